"""No model to talk with."""

from refold.errors.root import RefoldError


class NoModel(RefoldError):
    """There is no model to talk with: none was named, or the one named cannot be reached."""

    code = "no-model"
    usual_fix = (
        "Set a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY; "
        "or start a local server and add `-m local --base-url http://127.0.0.1:8080/v1`; "
        "or see how it looks without any: `refold demo`."
    )

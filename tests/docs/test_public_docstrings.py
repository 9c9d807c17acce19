"""Whatever the library exports says in a docstring what it is; private code need not."""

import importlib
import inspect
import pkgutil

import pytest

import refold

PUBLIC = [
    "refold",
    *(
        f"refold.{module.name}"
        for module in pkgutil.iter_modules(refold.__path__)
        if module.ispkg and module.name not in {"cli", "gateway", "service"}
    ),
    "refold.integrations.co_cli",
    "refold.integrations.pydantic_ai",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_an_exported_class_or_function_has_a_docstring(name):
    package = importlib.import_module(name)
    assert package.__doc__, name
    for exported in getattr(package, "__all__", ()):
        value = getattr(package, exported)
        if inspect.isclass(value) or inspect.isfunction(value):
            own = value.__doc__ is not None and not value.__doc__.startswith(f"{exported}(")
            assert own, f"{name}.{exported}"

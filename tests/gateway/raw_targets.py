"""Request targets by a seeded grammar of what servers and URL parsers disagree on."""

_PREFIXES = ["/v1", "/v1/", "/v1//", "/api/v1/", "/backend-api/codex", "/", "", "//", "/healthz"]
_RESTS = [
    "chat/completions",
    "responses",
    "messages",
    "messages/count_tokens",
    "models",
    "models/m-1",
    "models/org%2Fname",
    "files/f-1",
    "latest/meta-data",
    "sessions",
    "",
]
_SCHEMES = ["http", "https", "HTTP", "ftp", "file", "gopher", "javascript", "unix", ""]
_JOINTS = ["://", ":", ":/", ":///", "//", "/\\", "\\\\", "@", ":@", "%2F%2F", "%3A//", "%40"]
_ODD = [
    *("..", ".", "%2e%2e", "%2E.", "..;", "..%00", "%252e%252e", "...", ". ", "%c0%ae%c0%ae"),
    *("\\", "%5c", "%255c", "/", "%2f", "%2F", "%252f", "%25252F", "%c0%af", "%ef%bc%8f", "//"),
    *("#", "%23", "?", "%3f", "??", "?a=b", "?url=http://x", ";", ";a=b", "&", "=", "+", "~", "$"),
    *("@", "%40", "user@", "user:pass@", ":", "%3a", "[", "]", "[::1]", "%5b::1%5d", "[::ffff:1]"),
    *("%00", "%01", "%09", "%0a", "%0d%0a", "%0d%0aX:%20y", "%1b[31m", "%7f", "%80", "%85", "%ff"),
    *("\x01", "\t", "\x0b", "\x1f", "\x7f", "\x80", "\x85", "\xa0", "\xad", "\xff", "é"),
    *("%", "%%", "%2", "%zz", "%u2215", "%e2%80%a8", "%e3%80%82", "\xe2\x81\x84", "{}", "|", "^"),
    *("`", '"', "'", "<", ">", "*", "!", "(", ")", ",", "0x7f000001", "2130706433", "127.1"),
]


def targets(random, count, upstream_port, other_port):
    """So many targets; those that name a host name one that must not be reached."""
    for _ in range(count):
        yield _target(random, upstream_port, other_port)


def _target(random, upstream_port, other_port):
    made = random.choice(_SHAPES)(random, upstream_port, other_port)
    for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
        made = random.choice(_CHANGES)(random, made)
    if random.random() < 0.01:
        made += random.choice(["a", "/a", "%2e", "%2F", "%25"]) * random.choice([3_000, 20_000])
    return made.replace(" ", "%20").replace("\r", "").replace("\n", "")


def _authority(random, other_port):
    host = random.choice(
        ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
    )
    user = random.choice(["", "", "user@", "user:pass@", "%40", "a%2Fb@", "@"])
    return f"{user}{host}:{other_port}"


def _plain(random, _upstream, _other):
    return random.choice(_PREFIXES) + "/" + random.choice(_RESTS)


def _absolute(random, upstream, other):
    port = random.choice([upstream, other, other])
    scheme = random.choice(_SCHEMES) + random.choice(_JOINTS)
    return scheme + _authority(random, port) + _plain(random, upstream, other)


def _authority_form(random, _upstream, other):
    return random.choice(["", "/", "//", "\\\\", "/\\", "///"]) + _authority(random, other)


def _hidden_authority(random, _upstream, other):
    """A prefix in some encoding, and then what is an authority to whoever glues it to a host."""
    start = random.choice(_PREFIXES)
    coded = "".join(_coded(random, char, 0.5) for char in start)
    glue = random.choice(["@", ":@", ".x@", "%40", ":80@", "#@", "?@", ";@", "\\@", "/@", "x:"])
    return coded + glue + _authority(random, other) + "/" + random.choice(_RESTS)


def _encoded_slash(random, _upstream, other):
    """What decodes to a path beneath `/v1/`, and does not begin with a slash."""
    start = "".join(_coded_once(random, char) for char in "v1")
    start = random.choice(["%2F", "%2f"]) + start + random.choice(["/", "%2F", "%2f"])
    glue = random.choice(["@", "x@", ":x@", ".x@", "a:80@", "%2F@", "", "\\@", ";@"])
    return start + glue + _authority(random, other) + "/" + random.choice(_RESTS)


def _query(random, _upstream, other):
    rest = random.choice(["a=b", "#", "@", "a#b", "url=http://", "%00", "%0d%0a", "?", "&&", "\\"])
    path = random.choice(["/v1/models", "/v1/chat/completions", "%2Fv1%2Fmodels", "/api/v1/usage"])
    return f"{path}?{rest}{_authority(random, other)}"


def _noise(random, _upstream, _other):
    start = random.choice([*_PREFIXES, "%2Fv1%2F", "%2fv1/", "%252Fv1/", "\\v1\\", "/v1%2F"])
    return start + "".join(random.choice(_ODD) for _ in range(random.randint(1, 12)))


def _coded(random, char, share):
    """The character, or one of the ways to write it."""
    if random.random() > share:
        return char
    once = f"%{ord(char) % 256:02{random.choice('xX')}}"
    return random.choice([once, once, once.replace("%", "%25"), once.replace("%", "%2525")])


def _coded_once(random, char):
    return random.choice([char, f"%{ord(char):02x}"])


def _insert(random, made):
    at = random.randint(0, len(made))
    return made[:at] + random.choice(_ODD) + made[at:]


def _encode(random, made):
    share = random.choice([0.05, 0.3, 1.0])
    return "".join(_coded(random, char, share) for char in made)


def _drop(random, made):
    at = random.randint(0, len(made))
    return made[:at] + made[at + random.randint(1, 3) :]


def _repeat(random, made):
    at = random.randint(0, len(made))
    return made[:at] + made[at : at + 5] * random.randint(1, 4) + made[at:]


def _climb(random, made):
    up = random.choice(["/..", "/%2e%2e", "/%252e%252e", "/..;", "/.", "\\..", "%2F..", "/..%5c"])
    return made + up * random.randint(1, 3)


_SHAPES = [
    *(_plain, _absolute, _authority_form, _encoded_slash, _encoded_slash),
    *(_hidden_authority, _query, _noise),
]
_CHANGES = [_insert, _insert, _encode, _drop, _repeat, _climb]

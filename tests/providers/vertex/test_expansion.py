"""Text survives ``$(NAME)``. The counterpart is Kubernetes' algorithm, letter by letter as its source has it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cloudtrain.providers.vertex.expansion import escaped, expanded

TEXTS = st.text(alphabet=st.sampled_from("$$$$()ABx \n"), max_size=14)
VARIABLES = {"A": "first", "AB": "$(A)", "": "empty"}


def kubernetes(text: str, variables: dict[str, str]) -> str:
    """third_party/forked/golang/expansion/expand.go: a cursor that reads what follows each dollar."""
    out, cursor, checkpoint = "", 0, 0
    while cursor < len(text):
        if text[cursor] == "$" and cursor + 1 < len(text):
            out += text[checkpoint:cursor]
            rest = text[cursor + 1 :]
            if rest[0] == "$":
                read, advance = "$", 1
            elif rest[0] == "(":
                end = rest.find(")")
                name = rest[1:end]
                if end < 0:
                    read, advance = "$(", 1
                else:
                    read, advance = variables.get(name, f"$({name})"), end + 1
            else:
                read, advance = "$" + rest[0], 1
            out += read
            cursor += advance
            checkpoint = cursor + 1
        cursor += 1
    return out + text[checkpoint:]


@given(TEXTS)
def test_escaped_text_arrives_as_it_was(text: str) -> None:
    assert kubernetes(escaped(text), VARIABLES) == text


@given(TEXTS)
def test_expansion_is_kubernetes_own(text: str) -> None:
    assert expanded(text, VARIABLES) == kubernetes(text, VARIABLES)


def test_a_dollar_alone_stays_readable() -> None:
    assert escaped("$HOME/${data.train} 5$ $") == "$HOME/${data.train} 5$ $"
    assert escaped("$(date) $$") == "$$(date) $$$$"

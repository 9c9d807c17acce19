"""Each recipe for contributors, followed literally on a copy of the tree."""

import importlib.util
import os

import pytest
from recipe_steps import Changed, Command, NewFile, edit, failing, steps_of
from tree_copies import ROOT, copy_of_tree

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("importlinter") is None,
    reason="the checks are installed on one Python",
)
PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "contributing").glob("add-a-*.md"))}
NEEDED = {
    "add-a-policy": "view/plan.py",
    "add-a-store": "stores/__init__.py",
    "add-a-wire": "wire/__init__.py",
}
"""Of each recipe a step that is left out, to see that its commands notice."""
EDITS = [
    (name, at)
    for name, page in PAGES.items()
    for at, step in enumerate(steps_of(page))
    if not isinstance(step, Command)
]


def follow(tree, steps):
    """What the first command that fails says; nothing when all succeed."""
    for step in steps:
        if not isinstance(step, Command):
            edit(tree, step)
        elif said := failing(tree, step):
            return said
    return ""


def without_types(steps):
    """The edits, and of the commands what makes pages anew and runs tests."""
    return [one for one in steps if not isinstance(one, Command) or "types" not in one.line]


@pytest.mark.parametrize("name", PAGES)
def test_a_recipe_leads_where_it_says(name, tmp_path):
    steps = steps_of(PAGES[name])
    assert {type(step) for step in steps} == {NewFile, Changed, Command}
    assert follow(copy_of_tree(tmp_path), steps) == ""


@pytest.mark.parametrize("name", PAGES)
def test_a_step_left_out_is_noticed(name, tmp_path):
    steps = without_types(steps_of(PAGES[name]))
    left = [one for one in steps if isinstance(one, Command) or NEEDED[name] not in one.path]
    assert len(left) < len(steps)
    assert follow(copy_of_tree(tmp_path), left)


@pytest.mark.skipif(os.environ.get("REFOLD_RECIPES") != "all", reason="`make recipes` runs it")
@pytest.mark.parametrize(("name", "at"), EDITS)
def test_every_step_left_out_is_noticed(name, at, tmp_path):
    steps = steps_of(PAGES[name])
    assert follow(copy_of_tree(tmp_path), steps[:at] + steps[at + 1 :])


def test_a_change_that_does_not_fit_is_told(tmp_path):
    (tmp_path / "file").write_text("one\ntwo\none\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="2 places"):
        edit(tmp_path, Changed("file", (" one\n+more\n",)))
    with pytest.raises(AssertionError, match="0 places"):
        edit(tmp_path, Changed("file", (" three\n",)))
    edit(tmp_path, Changed("file", (" two\n+more\n", "-two\n")))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "one\nmore\none\n"

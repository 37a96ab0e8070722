"""A chat branches where a message is edited or answered again."""

from __future__ import annotations

from llmd_tui.screens.chat.store.records import Content, Message
from llmd_tui.screens.chat.tree import Tree

SHAPE = {1: None, 2: 1, 3: 2, 4: 3, 5: 1, 6: 5, 7: 1}
"""Parents by message: three answers to 1; the first is followed by 3 and 4, the second by 6."""


def tree(leaf: int | None = 4) -> Tree:
    messages = [
        Message(number, parent, "user" if number in {1, 3, 6} else "assistant", Content(str(number)))
        for number, parent in SHAPE.items()
    ]
    return Tree(messages, leaf)


def path(tree: Tree) -> list[int]:
    return [one.message_id for one in tree.path()]


def test_the_branch_of_the_leaf_is_shown() -> None:
    assert path(tree()) == [1, 2, 3, 4]
    assert path(tree(6)) == [1, 5, 6]
    assert path(tree(leaf=99)) == [1, 7]  # the newest one, if the leaf is unknown
    assert path(Tree()) == []


def test_a_sibling_is_shown_to_its_newest_message() -> None:
    branched = tree()
    assert branched.place(2) == (1, 3)
    assert branched.turn_to(2, 1) == 6
    assert path(branched) == [1, 5, 6]
    assert branched.turn_to(5, 1) == 7
    assert branched.turn_to(7, 1) is None
    assert path(branched) == [1, 7]
    assert branched.turn_to(5, -1) == 4


def test_an_added_message_is_shown_and_may_have_siblings() -> None:
    branched = tree()
    branched.add(Message(8, 2, "user", Content("another question")))
    assert path(branched) == [1, 2, 8]
    assert branched.siblings(8) == [3, 8]
    branched.replace(8, Content("changed"))
    assert branched[8].content.text == "changed"


def test_a_removed_branch_is_gone_whole_and_the_one_before_it_is_shown() -> None:
    branched = tree(6)
    assert branched.remove(5) == 4
    assert path(branched) == [1, 2, 3, 4]
    assert len(branched) == 5
    assert 6 not in branched


def test_the_last_branch_leaves_its_question() -> None:
    branched = Tree([Message(1, None, "user", Content()), Message(2, 1, "assistant", Content())], 2)
    assert branched.remove(2) == 1
    assert branched.remove(1) is None
    assert path(branched) == []


def test_removing_a_branch_that_is_not_shown_leaves_the_shown_one() -> None:
    branched = tree(4)
    assert branched.remove(5) == 4
    assert path(branched) == [1, 2, 3, 4]

"""Tools of Anthropic's SDK."""

from anthropic import beta_tool


@beta_tool
def lookup(word: str, exact: bool = False) -> str:
    """Looks a word up.
    In one of the books.

    Use when a word is not known.
    """
    return ""


@beta_tool(name="spell", description="Spells.\n\nUse when asked to.")
def spell_word(word: str) -> str:
    return ""


@beta_tool
def sections(word: str) -> str:
    """Has sections.

    Args:
        word: A word.
    """
    return ""

"""Tools of smolagents."""

from typing import Optional

from smolagents import Tool, tool


@tool
def catering(query: str, budget: float = 100.0) -> str:
    """
    This tool returns the highest-rated catering service.

    Args:
        query: A search term for finding catering services.
        budget: The most that it may cost.
    """
    return query


@tool
def travel_time(start: str, destination: str, when: Optional[str] = None) -> str:
    """Gets the travel time between two places.
    Use when somebody has to be there in time.

    Args:
        start: The place of departure
        destination: The place of arrival
        when: The departure time, as a
            date in ISO 8601

    Returns:
        The time as text.
    """
    return start


class PartyTheme(Tool):
    name = "party_theme"
    description = """
    This tool suggests ideas for a party.
    It returns a theme."""
    inputs = {
        "category": {"type": "string", "description": "The kind of party"},
        "guests": {"type": "integer", "description": "How many", "nullable": True},
    }
    output_type = "string"

    def forward(self, category: str, guests: Optional[int] = None):
        return category


class Clock(Tool):
    name = "clock"
    description = "Tells the time."
    inputs = {}
    output_type = "string"

    def forward(self):
        return "noon"


class About(Tool):
    name = "about"
    inputs = {"question": {"type": "string", "description": "What to ask"}}
    output_type = "string"

    def __init__(self, topic="cats"):
        super().__init__()
        self.description = f"Knows everything about {topic}."

    def forward(self, question):
        return question


theme = PartyTheme()
clock = Clock()
about = About()

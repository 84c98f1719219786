"""Lists in the shapes of the APIs, and plain functions."""

OPENAI_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get current temperature for a location.",
            "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
        },
    },
    {
        "type": "function",
        "name": "send_email",
        "description": "Sends an email.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}, "required": ["to"]},
    },
]

anthropic_tools = [
    {
        "name": "get_stock_price",
        "description": "Retrieves the current price of a stock.",
        "input_schema": {"type": "object", "properties": {"ticker": {"type": "string"}}, "required": ["ticker"]},
    }
]

"""The agent of ../adk behind the Agent2Agent (A2A) protocol, by ADK's own bridge `to_a2a`.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    .venv/bin/python server.py 8001

The server is ready when GET http://127.0.0.1:8001/.well-known/agent-card.json answers.
"""

import os
import sys
from pathlib import Path

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "adk"))
from shop.agent import root_agent

if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8001"))
    uvicorn.run(to_a2a(root_agent, host="127.0.0.1", port=port), host="127.0.0.1", port=port)

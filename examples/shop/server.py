#!/usr/bin/env python3
"""A shop with an agent that refunds orders. Needs only Python's standard library.

    python3 server.py [--port 8765] [--database shop.db] [--careless]

POST /chat   the agent: {"message", "messages"} -> {"response", "toolCalls"}
POST /reset  puts the database into its first state
GET  /state  the database as JSON

With --careless, the agent also refunds the customer's other open order, and does not report it.
"""

import argparse
import json
import re
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ORDERS = [
    # id, customer, total in cents, days since the delivery
    ("4411", "ada", 2500, 3),
    ("4412", "ada", 9900, 5),
    ("4413", "grace", 4000, 90),
]
REFUND_DAYS = 30


class Shop:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.database = sqlite3.connect(path, check_same_thread=False)
        self.reset()

    def reset(self):
        with self.lock, self.database as database:
            database.execute("DROP TABLE IF EXISTS orders")
            database.execute("DROP TABLE IF EXISTS refunds")
            database.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT, total INTEGER, days INTEGER, status TEXT)")
            database.execute("CREATE TABLE refunds (order_id TEXT PRIMARY KEY, amount INTEGER)")
            database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, 'delivered')", ORDERS)

    def state(self):
        with self.lock:
            orders = self.database.execute("SELECT id, customer, total, status FROM orders ORDER BY id").fetchall()
            refunds = self.database.execute("SELECT order_id, amount FROM refunds ORDER BY order_id").fetchall()
        return {
            "orders": {id: {"customer": who, "total": total, "status": status} for id, who, total, status in orders},
            "refunds": {id: {"amount": amount} for id, amount in refunds},
        }

    def get_order(self, id):
        with self.lock:
            row = self.database.execute("SELECT customer, total, days, status FROM orders WHERE id = ?", (id,)).fetchone()
        return dict(zip(("customer", "total", "days", "status"), row)) if row else None

    def orders_of(self, customer):
        with self.lock:
            rows = self.database.execute("SELECT id FROM orders WHERE customer = ? AND status = 'delivered'", (customer,))
            return [id for (id,) in rows.fetchall()]

    def refund_order(self, id):
        with self.lock, self.database as database:
            (total,) = database.execute("SELECT total FROM orders WHERE id = ?", (id,)).fetchone()
            database.execute("UPDATE orders SET status = 'refunded' WHERE id = ?", (id,))
            database.execute("INSERT INTO refunds VALUES (?, ?)", (id, total))
        return {"amount": total}


def answer(shop, message, careless):
    """The agent: asks for the order, looks it up, and refunds it if it is recent."""
    found = re.search(r"\b\d{4}\b", message)
    if not found:
        return {"response": "Which order is it? Please tell me its number.", "toolCalls": []}
    id = found.group()
    order = shop.get_order(id)
    calls = [{"name": "get_order", "success": True, "params": {"orderId": id}, "result": order}]
    if order is None:
        return {"response": f"There is no order {id}.", "toolCalls": calls}
    if order["days"] > REFUND_DAYS:
        return {"response": f"Order {id} was delivered {order['days']} days ago, too long for a refund.", "toolCalls": calls}
    others = [other for other in shop.orders_of(order["customer"]) if other != id]
    refund = shop.refund_order(id)
    calls.append({"name": "refund_order", "success": True, "params": {"orderId": id}, "result": refund})
    if careless:
        for other in others:
            shop.refund_order(other)
    return {"response": f"Order {id} is refunded: you get {refund['amount'] / 100:.2f} EUR back.", "toolCalls": calls}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/state":
            self.reply(self.server.shop.state())
        else:
            self.reply({"error": "not found"}, 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/reset":
            self.server.shop.reset()
            self.reply({"ok": True})
        elif self.path == "/chat":
            self.reply(answer(self.server.shop, body["message"], self.server.careless))
        else:
            self.reply({"error": "not found"}, 404)

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=8765)
    arguments.add_argument("--database", default="shop.db")
    arguments.add_argument("--careless", action="store_true")
    options = arguments.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.shop, server.careless = Shop(options.database), options.careless
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

// Tools of Mastra.
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const Money = z.object({ amount: z.number(), currency: z.string().length(3) });

export const convertTool = createTool({
  id: "convert-currency",
  description: "Converts an amount between currencies",
  inputSchema: Money.extend({ to: z.string(), on: z.iso.date().optional() }),
  outputSchema: Money,
  execute: async ({ amount, currency }) => ({ amount, currency }),
});

export const refundTool = createTool({
  id: "refund_order",
  description: "Refunds an order. Use when the customer sent it back.",
  inputSchema: z.object({ orderId: z.string(), money: Money.optional(), lines: z.record(z.string(), z.number()).optional() }),
  execute: async () => ({ ok: true }),
});

export const ratesTool = createTool({
  id: "list-rates",
  description: "Lists today's rates",
  execute: async () => ({}),
});

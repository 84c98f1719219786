// Tools of LangChain.js.
import { DynamicStructuredTool, DynamicTool, StructuredTool, Tool, tool } from "@langchain/core/tools";
import { z } from "zod";

export const adder = tool(async ({ a, b }) => String(a + b), {
  name: "adder",
  description: "Adds two numbers together",
  schema: z.object({ a: z.number(), b: z.number() }),
});

export const lookup = new DynamicStructuredTool({
  name: "lookup",
  description: "Looks a word up",
  schema: z.object({ word: z.string(), language: z.string().nullish() }),
  func: async ({ word }) => word,
});

const weather = tool(async ({ city }: { city: string }) => city, {
  name: "weather",
  description: "Tells the weather of a city",
  schema: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } }, required: ["city"] },
});

class Calculator extends StructuredTool {
  name = "calculator";
  description = "Evaluates an expression";
  schema = z.object({ expression: z.string(), digits: z.number().default(2) });

  async _call({ expression }: { expression: string }) {
    return expression;
  }
}

export const tools = [adder, weather, new Calculator()];

export const shout = new DynamicTool({ name: "shout", description: "Shouts a text", func: async (input: string) => input.toUpperCase() });

class Echo extends Tool {
  name = "echo";
  description = "Repeats a text";

  async _call(input: string) {
    return input;
  }
}

export const echo = new Echo();

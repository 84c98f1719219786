// Tools of the OpenAI Agents SDK.
import { Agent, tool } from "@openai/agents";
import { z } from "zod";

const historyFunFact = tool({
  name: "history_fun_fact",
  description: "Give a fun fact about a historical event",
  parameters: z.object({}),
  execute: async () => "Sharks are older than trees.",
});

const getWeather = tool({
  name: "get_weather",
  description: "Return the weather for a given city.",
  parameters: z.object({ city: z.string(), unit: z.enum(["c", "f"]).nullable() }),
  execute: async ({ city }) => `The weather in ${city} is sunny.`,
});

const search = tool({
  name: "search",
  description: "Searches the archive",
  strict: false,
  parameters: {
    type: "object",
    properties: { query: { type: "string" }, limit: { type: "integer" } },
    required: ["query"],
    additionalProperties: true,
  },
  execute: async () => "",
});

export const agent = new Agent({ name: "History tutor", instructions: "Teach.", tools: [historyFunFact, getWeather, search] });

const translator = new Agent({ name: "Spanish translator", instructions: "Translate." });
export const translate = translator.asTool({ toolName: "translate", toolDescription: "Translates to Spanish" });
export const summarize = new Agent({ name: "Summarizer", instructions: "Sum up." }).asTool({
  toolName: "summarize",
  toolDescription: "Sums a text up",
});
export const byName = translator.asTool({ toolDescription: "Translates by its own name" });
export const byFunction = tool({
  description: "Counts letters",
  parameters: z.object({ text: z.string() }),
  execute: async function count_letters({ text }) {
    return String(text.length);
  },
});

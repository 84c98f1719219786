// Tools of the Vercel AI SDK: the key is the name.
import { jsonSchema, tool } from "ai";
import { z } from "zod";

const location = z.string().describe("The city and country");

export const getWeather = tool({
  description: "Get the weather in a location",
  inputSchema: z.object({ location, unit: z.enum(["celsius", "fahrenheit"]).default("celsius") }),
  execute: async ({ location }) => ({ location, temperature: 20 }),
});

function made(where: string, how = "quickly") {
  return tool({ description: `Made ${where} ${how}`, inputSchema: z.object({ a: z.string() }), execute: async () => "" });
}

export const tools = {
  getWeather,
  city_attractions: tool({
    description: "Get tourist attractions in a city",
    inputSchema: z.strictObject({ city: z.string(), kinds: z.array(z.enum(["museum", "park"])).optional() }),
  }),
  lookup: tool({
    description: "Looks a word up",
    inputSchema: jsonSchema<{ word: string }>({
      type: "object",
      properties: { word: { type: "string" }, language: { type: "string" } },
      required: ["word"],
    }),
  }),
  plain: { description: "Is a plain object", inputSchema: z.object({ text: z.string() }), execute: async () => "" },
  client_side: { description: "Runs elsewhere", inputSchema: z.object({ text: z.string(), times: z.number().optional() }) },
  here: made("here"),
  now: tool({ description: "Tells the time", inputSchema: z.object({}), execute: async () => new Date().toISOString() }),
};

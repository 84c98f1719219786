// A server of the official MCP SDK that connects itself, as in the quick start: nothing is exported.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "weather", version: "1.0.0" });

const Unit = z.enum(["metric", "imperial"]);
const Place = z.object({ name: z.string().min(1), height: z.number().optional() });

server.registerTool(
  "get_alerts",
  {
    title: "Alerts",
    description: "Get weather alerts for a state",
    inputSchema: { state: z.string().length(2).describe("Two-letter state code (e.g. CA, NY)") },
  },
  async ({ state }) => ({ content: [{ type: "text", text: state }] }),
);

server.registerTool(
  "get_forecast",
  {
    description: `Get weather forecast for a location.
      Use when somebody asks about tomorrow.`,
    inputSchema: {
      latitude: z.number().min(-90).max(90).describe("Latitude of the location"),
      longitude: z.number().min(-180).max(180),
      days: z.number().int().default(3),
      unit: Unit.optional(),
    },
  },
  async ({ latitude, longitude }) => ({ content: [{ type: "text", text: `${latitude},${longitude}` }] }),
);

server.registerTool(
  "compare",
  { description: "Compares places", inputSchema: z.object({ places: z.array(Place), by: z.string().nullish(), near: Place.partial() }) },
  async () => ({ content: [] }),
);

server.tool("look", "Looks " + "out of the window", { direction: z.union([z.literal("north"), z.literal("south")]) }, async () => ({ content: [] }));
server.tool("clear", "Clears the cache", async () => ({ content: [] }));
server.tool("ping", async () => ({ content: [] }));

async function main(): Promise<void> {
  await server.connect(new StdioServerTransport());
  console.error("Weather MCP Server running on stdio");
}

main().catch((error) => {
  console.error("Fatal error in main():", error);
  process.exit(1);
});

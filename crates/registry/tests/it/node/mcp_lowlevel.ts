// A low-level server of the official MCP SDK, made by a function.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema, type Tool } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const ReadFileArgs = z.object({ path: z.string(), head: z.number().optional() });
const { $schema, ...plainSchema } = z.toJSONSchema(ReadFileArgs);
const READ_FILE_SCHEMA = {
  type: "object" as const,
  properties: { path: { type: "string" }, head: { type: "number", description: "Only the first lines" } },
  required: ["path"],
};
const Names = { read: "read_file" } as const;

const SEARCH_TOOL: Tool = {
  name: "search_files",
  description: "Searches for files below a folder. " + "Use when the path is not known.",
  inputSchema: {
    type: "object",
    properties: { pattern: { type: "string" }, exclude: { type: "array", items: { type: "string" } } },
    required: ["pattern"],
  },
};

export function createServer() {
  const server = new Server({ name: "files", version: "0.2.0" }, { capabilities: { tools: {} } });

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [
      { name: Names.read, description: "Reads a file.", inputSchema: READ_FILE_SCHEMA },
      SEARCH_TOOL,
      { name: "read_plain", description: "Reads by a type without its dialect.", inputSchema: plainSchema as any },
      { name: "read_zod", description: "Reads by a zod type.", inputSchema: z.toJSONSchema(ReadFileArgs) as any },
      {
        name: "read_input",
        description: "Reads by what goes into a zod type.",
        inputSchema: z.toJSONSchema(ReadFileArgs.partial().required({ path: true }), { io: "input" }) as Tool["inputSchema"],
      },
      {
        name: "read_range",
        description: "Reads a range.",
        inputSchema: z.toJSONSchema(z.object({ from: z.number(), ...ReadFileArgs.pick({ path: true }).shape, to: z.number().optional() })) as any,
      },
      { name: "list_roots", description: "Lists the folders that may be read.", inputSchema: { type: "object", properties: {} } },
    ],
  }));

  server.setRequestHandler(CallToolRequestSchema, async (request) => {
    switch (request.params.name) {
      case "read_file":
        return { content: [{ type: "text", text: ReadFileArgs.parse(request.params.arguments).path }] };
      default:
        throw new Error(`Unknown tool: ${request.params.name}`);
    }
  });
  return server;
}

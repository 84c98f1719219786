// A server of the official MCP SDK with zod 3.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

export const server = new McpServer({ name: "notes", version: "1.0.0" });

const Note = z.object({ title: z.string().max(80), tags: z.array(z.string()).default([]), pinned: z.boolean().optional() });

server.tool("add_note", "Adds a note", Note.shape, async () => ({ content: [] }));

server.registerTool(
  "find_notes",
  {
    description: "Finds notes by their words or tags",
    inputSchema: {
      query: z.string().describe("The words"),
      limit: z.number().int().positive().max(50).optional().default(10),
      sort: z.enum(["newest", "oldest"]).nullable(),
      between: z.tuple([z.string(), z.string()]).optional(),
    },
  },
  async () => ({ content: [] }),
);

server.registerTool("delete_note", { description: "Deletes a note for good", inputSchema: Note.pick({ title: true }).shape }, async () => ({
  content: [],
}));

server.tool("count_notes", "Counts the notes", async () => ({ content: [] }));

// JSON Schemas that zod-to-json-schema makes of zod 3.
import { z } from "zod";
import { zodToJsonSchema } from "zod-to-json-schema";

const CreateBranch = z.object({ repo: z.string(), branch: z.string(), from: z.string().optional().describe("Default: main") });
const ListCommits = z.object({ repo: z.string(), page: z.number().optional(), perPage: z.number().optional() }).strict();

export const tools = [
  { name: "create_branch", description: "Create a new branch in a repository", inputSchema: zodToJsonSchema(CreateBranch) },
  { name: "list_commits", description: "Get list of commits of a branch", inputSchema: zodToJsonSchema(ListCommits) },
  {
    name: "fork",
    description: "Fork a repository",
    inputSchema: zodToJsonSchema(CreateBranch.omit({ branch: true, from: true }).extend({ organization: z.string().nullish() })),
  },
];

// The same in the shape of a project's own, which converts when it offers them.
export const status = { name: "status", description: "Shows the status", schema: CreateBranch.pick({ repo: true, branch: true }).partial() };

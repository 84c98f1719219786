// A shop agent built with Mastra (https://mastra.ai), served by Mastra's Hono server. It needs Node 22.13 or newer.
//
//   npm install
//   node agent.mjs 8080          # or PORT=8080 node agent.mjs
//
// POST /api/agents/shop/generate and /api/agents/shop/stream; GET /api/agents lists the agents.
import { serve } from '@hono/node-server';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { MastraServer } from '@mastra/hono';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { Hono } from 'hono';
import { z } from 'zod';
import { scriptedModel } from './model.mjs';

const get_order = createTool({
  id: 'get_order',
  description: 'Look up an order',
  inputSchema: z.object({ order_id: z.string() }),
  execute: async ({ order_id }) => ({ order_id, status: 'shipped' }),
});
const cancel_order = createTool({
  id: 'cancel_order',
  description: 'Cancel an order',
  inputSchema: z.object({ order_id: z.string(), reason: z.string() }),
  execute: async ({ order_id }) => ({ cancelled: order_id }),
});
const get_weather = createTool({
  id: 'get_weather',
  description: 'Current weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
    return { city, celsius: 18 };
  },
});
const delete_account = createTool({
  id: 'delete_account',
  description: 'Delete the account of a customer',
  inputSchema: z.object({ account_id: z.string() }),
  requireApproval: true,
  execute: async ({ account_id }) => ({ deleted: account_id }),
});

const shop = new Agent({
  id: 'shop',
  name: 'Shop',
  instructions: 'You help the customers of a shop.',
  model: scriptedModel, // in production: 'openai/gpt-5'
  tools: { get_order, cancel_order, get_weather, delete_account },
  memory: new Memory({ options: { lastMessages: 20 } }),
  maxRetries: 0,
});

const mastra = new Mastra({
  agents: { shop },
  storage: new LibSQLStore({ id: 'shop', url: ':memory:' }),
  logger: false,
});

const app = new Hono();
await new MastraServer({ app, mastra }).init();

const port = Number(process.argv[2] ?? process.env.PORT ?? 8080);
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => console.log(`listening on http://127.0.0.1:${port}`));
process.on('SIGTERM', () => process.exit(0));

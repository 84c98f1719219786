// A shop agent built with the AI SDK (https://ai-sdk.dev), on a plain Node server. It needs Node 22 or newer.
//
//   npm install
//   node agent.mjs 8080          # or PORT=8080 node agent.mjs
//
// POST /api/chat takes what useChat sends and streams UI messages back.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { isStepCount, pipeAgentUIStreamToResponse, tool, ToolLoopAgent } from 'ai';
import { z } from 'zod';
import { scriptedModel } from './model.mjs';

const shop = new ToolLoopAgent({
  model: scriptedModel, // in production: openai('gpt-5')
  instructions: 'You help the customers of a shop.',
  stopWhen: isStepCount(5),
  maxRetries: 0,
  tools: {
    get_order: tool({
      description: 'Look up an order',
      inputSchema: z.object({ order_id: z.string() }),
      execute: async ({ order_id }) => ({ order_id, status: 'shipped' }),
    }),
    cancel_order: tool({
      description: 'Cancel an order',
      inputSchema: z.object({ order_id: z.string(), reason: z.string() }),
      execute: async ({ order_id }) => ({ cancelled: order_id }),
    }),
    get_weather: tool({
      description: 'Current weather in a city',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
        return { city, celsius: 18 };
      },
    }),
    delete_account: tool({
      description: 'Delete the account of a customer',
      inputSchema: z.object({ account_id: z.string() }),
      execute: async ({ account_id }) => ({ deleted: account_id }),
    }),
  },
  toolApproval: {
    delete_account: ({ account_id }) => ({ type: 'user-approval', reason: `Delete account ${account_id}?` }),
  },
});

const server = createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/api/chat') {
    response.writeHead(404).end('Not found');
    return;
  }
  try {
    const { messages } = await json(request);
    await pipeAgentUIStreamToResponse({
      response,
      agent: shop,
      uiMessages: messages,
      messageMetadata: ({ part }) => (part.type === 'finish' ? { usage: part.totalUsage } : undefined),
      onError: (error) => error.message, // without this, the AI SDK sends "An error occurred."
    });
  } catch (error) {
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: error.message }));
  }
});

const port = Number(process.argv[2] ?? process.env.PORT ?? 8080);
server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`));
process.on('SIGTERM', () => process.exit(0));

// A shop agent built with TanStack AI (https://tanstack.com/ai), on a plain Node server. It needs Node 20 or newer.
//
//   npm install
//   node agent.mjs 8080          # or PORT=8080 node agent.mjs
//
// POST /api/chat takes an AG-UI RunAgentInput and streams AG-UI events.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { chat, chatParamsFromRequestBody, toolDefinition, toServerSentEventsStream } from '@tanstack/ai';
import { z } from 'zod';
import { scriptedText } from './model.mjs';

const tools = [
  toolDefinition({
    name: 'get_order',
    description: 'Look up an order',
    inputSchema: z.object({ order_id: z.string() }),
  }).server(({ order_id }) => ({ order_id, status: 'shipped' })),
  toolDefinition({
    name: 'cancel_order',
    description: 'Cancel an order',
    inputSchema: z.object({ order_id: z.string(), reason: z.string() }),
  }).server(({ order_id }) => ({ cancelled: order_id })),
  toolDefinition({
    name: 'get_weather',
    description: 'Current weather in a city',
    inputSchema: z.object({ city: z.string() }),
  }).server(({ city }) => {
    if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
    return { city, celsius: 18 };
  }),
  toolDefinition({
    name: 'delete_account',
    description: 'Delete the account of a customer',
    inputSchema: z.object({ account_id: z.string() }),
    needsApproval: true,
  }).server(({ account_id }) => ({ deleted: account_id })),
];

const server = createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/api/chat') {
    response.writeHead(404).end('Not found');
    return;
  }
  try {
    const { messages, threadId, runId, parentRunId, resume } = await chatParamsFromRequestBody(await json(request));
    const adapter = scriptedText(); // in production: openaiText('gpt-5')
    const events = chat({ adapter, messages, tools, threadId, runId, parentRunId, resume, debug: false });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    Readable.fromWeb(toServerSentEventsStream(events)).pipe(response);
  } catch (error) {
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: error.message }));
  }
});

const port = Number(process.argv[2] ?? process.env.PORT ?? 8080);
server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`));
process.on('SIGTERM', () => process.exit(0));

// A shop agent that speaks AG-UI (https://docs.ag-ui.com), on a plain Node server. It needs Node 20 or newer.
//
//   npm install
//   node agent.mjs 8080          # or PORT=8080 node agent.mjs
//
// POST / takes a RunAgentInput and streams the events of the run.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { EventType, PROTOCOL_VERSION } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { scriptedModel } from './model.mjs';

const tools = {
  get_order: ({ order_id }) => ({ order_id, status: 'shipped' }),
  cancel_order: ({ order_id }) => ({ cancelled: order_id }),
  get_weather: ({ city }) => {
    if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
    return { city, celsius: 18 };
  },
  delete_account: ({ account_id }) => ({ deleted: account_id }),
};
const approvals = { delete_account: ({ account_id }) => `Delete account ${account_id}?` };

// The messages of threads that wait for an approval.
const waiting = new Map();

async function* run({ threadId, runId, messages, resume = [] }) {
  yield { type: EventType.RUN_STARTED, threadId, runId, protocolVersion: PROTOCOL_VERSION };
  const usage = { provider: 'scripted', model: 'shop', inputTokens: 0, outputTokens: 0 };
  try {
    let calls = [];
    if (waiting.has(threadId)) {
      messages = waiting.get(threadId);
      calls = messages.at(-1).toolCalls;
      yield* answer(calls, resume, messages);
      waiting.delete(threadId);
    } else if (resume.length > 0) {
      throw new Error(`thread '${threadId}' does not wait for an answer`);
    }
    do {
      const step = await scriptedModel(messages);
      usage.inputTokens += step.inputTokens;
      usage.outputTokens += step.outputTokens;
      const message = { id: randomUUID(), role: 'assistant', content: step.text, toolCalls: step.toolCalls };
      messages = [...messages, message];
      calls = step.toolCalls ?? [];
      if (step.text) yield* textEvents(message);
      for (const call of calls) yield* callEvents(call, message);
      const interrupts = calls.filter(needsApproval).map(interrupt);
      if (interrupts.length > 0) {
        waiting.set(threadId, messages);
        yield { type: EventType.MESSAGES_SNAPSHOT, messages };
        yield {
          type: EventType.RUN_FINISHED,
          threadId,
          runId,
          outcome: { type: 'interrupt', interrupts },
          usage: [usage],
        };
        return;
      }
      for (const call of calls) yield* execute(call, messages);
    } while (calls.length > 0);
    yield { type: EventType.MESSAGES_SNAPSHOT, messages };
    yield { type: EventType.RUN_FINISHED, threadId, runId, outcome: { type: 'success' }, usage: [usage] };
  } catch (error) {
    yield { type: EventType.RUN_ERROR, message: error.message };
  }
}

function* textEvents({ id: messageId, content }) {
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' };
  for (const delta of content.match(/\S+\s*/g)) yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
}

function* callEvents({ id: toolCallId, function: { name, arguments: args } }, message) {
  yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: name, parentMessageId: message.id };
  for (const delta of args.match(/.{1,12}/g)) yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta };
  yield { type: EventType.TOOL_CALL_END, toolCallId };
}

function* execute(call, messages) {
  const { name, arguments: args } = call.function;
  try {
    yield* result(call, { content: JSON.stringify(tools[name](JSON.parse(args))) }, messages);
  } catch (error) {
    yield* result(call, { content: '', error: error.message }, messages);
  }
}

// TOOL_CALL_RESULT cannot tell that a tool failed; the tool message in MESSAGES_SNAPSHOT can.
function* result(call, { content, error }, messages) {
  const message = { id: randomUUID(), role: 'tool', toolCallId: call.id, content: content || `Error: ${error}`, error };
  messages.push(message);
  yield {
    type: EventType.TOOL_CALL_RESULT,
    messageId: message.id,
    toolCallId: call.id,
    content: message.content,
    role: 'tool',
  };
}

function* answer(calls, resume, messages) {
  for (const call of calls) {
    const entry = resume.find((entry) => entry.interruptId === interrupt(call).id);
    if (!entry) throw new Error(`interrupt '${interrupt(call).id}' is not answered`);
    if (entry.status === 'resolved' && entry.payload?.approved) yield* execute(call, messages);
    else yield* result(call, { content: 'The user did not approve this call.' }, messages);
  }
}

const needsApproval = (call) => call.function.name in approvals;

const interrupt = ({ id, function: { name, arguments: args } }) => ({
  id: `approve-${id}`,
  reason: 'tool_call',
  message: approvals[name](JSON.parse(args)),
  toolCallId: id,
  responseSchema: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
});

const server = createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/') {
    response.writeHead(404).end('Not found');
    return;
  }
  const input = RunAgentInputSchema.safeParse(await json(request).catch(() => undefined));
  if (!input.success) {
    response.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify({ error: input.error.issues }));
    return;
  }
  const encoder = new EventEncoder({ accept: request.headers.accept });
  response.writeHead(200, { 'content-type': encoder.getContentType() });
  for await (const event of run(input.data)) response.write(encoder.encodeBinary(event));
  response.end();
});

const port = Number(process.argv[2] ?? process.env.PORT ?? 8080);
server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`));
process.on('SIGTERM', () => process.exit(0));

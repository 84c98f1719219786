// An agent behind OpenAI's Responses API: POST /v1/responses, GET /v1/responses/ID, GET /v1/models.
// The agent runs its own tools. The model of the request says how its calls are told:
//   shop      function_call and function_call_output items
//   shop-mcp  mcp_list_tools and mcp_call items; delete_account needs an approval
// Conversations: `previous_response_id`, or all the items as `input`.
import { afterApproval, pieces, send, serve, tokens, toolNames, turn } from './shop.mjs';

const models = ['shop', 'shop-mcp'];
const stored = new Map(); // response id -> { response, items: the items of the conversation }
let count = 0;
const newId = (prefix) => `${prefix}_${String(++count).padStart(8, '0')}`;

const apiError = (message, param = null, code = null) => {
  return { error: { message, type: 'invalid_request_error', param, code } };
};

const textOf = ({ content }) =>
  typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');

function callItems(model, step, approvalId = null) {
  if (model === 'shop-mcp') {
    return step.map(({ name, arguments: args, output, error }) => ({
      id: newId('mcp'),
      type: 'mcp_call',
      status: error ? 'failed' : 'completed',
      approval_request_id: approvalId,
      arguments: JSON.stringify(args),
      error: error ?? null,
      name,
      output: error ? null : JSON.stringify(output),
      server_label: 'shop',
    }));
  }
  const calls = step.map(({ name, arguments: args }) => {
    return {
      id: newId('fc'),
      type: 'function_call',
      status: 'completed',
      arguments: JSON.stringify(args),
      call_id: newId('call'),
      name,
    };
  });
  const outputs = step.map(({ output, error }, i) => {
    const text = error ? JSON.stringify({ error }) : JSON.stringify(output);
    return {
      id: newId('fco'),
      type: 'function_call_output',
      status: 'completed',
      call_id: calls[i].call_id,
      output: text,
    };
  });
  return [...calls, ...outputs];
}

const messageItem = (text) => ({
  id: newId('msg'),
  type: 'message',
  status: 'completed',
  content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
  role: 'assistant',
});

const listTools = () => ({
  id: newId('mcpl'),
  type: 'mcp_list_tools',
  server_label: 'shop',
  tools: toolNames.map((name) => ({ name, description: null, input_schema: { type: 'object' }, annotations: null })),
});

async function outputOf(model, items) {
  const reasoning = { id: newId('rs'), type: 'reasoning', summary: [] };
  const last = items.at(-1);
  if (last?.type === 'mcp_approval_response') {
    const asked = items.find(({ id }) => id === last.approval_request_id);
    const answer = afterApproval({ name: asked.name, arguments: JSON.parse(asked.arguments) }, last.approve);
    return [...answer.steps.flatMap((step) => callItems(model, step, asked.id)), messageItem(answer.text)];
  }
  const { steps, text, approval } = await turn(items.filter(({ role }) => role === 'user').map(textOf));
  const begin = model === 'shop-mcp' && !items.some(({ type }) => type === 'mcp_list_tools') ? [listTools()] : [];
  if (approval && model === 'shop-mcp') {
    const args = JSON.stringify(approval.arguments);
    const request = {
      id: newId('mcpr'),
      type: 'mcp_approval_request',
      arguments: args,
      name: approval.name,
      server_label: 'shop',
    };
    return [...begin, request];
  }
  const calls = steps.flatMap((step) => callItems(model, step));
  return [
    ...begin,
    ...(calls.length > 0 ? [reasoning] : []),
    ...calls,
    messageItem(text || 'I cannot delete accounts.'),
  ];
}

// Makes the text as short as the request asks; a response so cut is incomplete.
function cut(output, limit) {
  const message = output.at(-1);
  if (!limit || message.type !== 'message') return false;
  const words = pieces(message.content[0].text);
  if (words.length <= limit) return false;
  message.content[0].text = words.slice(0, limit).join('').trimEnd();
  message.status = 'incomplete';
  return true;
}

function responseObject(body, fields) {
  return {
    id: newId('resp'),
    object: 'response',
    created_at: 1767225600,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model: body.model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: null,
    user: null,
    metadata: {},
    ...fields,
  };
}

async function create({ response, body }) {
  if (!models.includes(body?.model)) {
    return send(
      response,
      400,
      apiError(`The requested model '${body?.model}' does not exist.`, 'model', 'model_not_found'),
    );
  }
  if (body.input === undefined) {
    return send(response, 400, apiError("Missing required parameter: 'input'.", 'input', 'missing_required_parameter'));
  }
  const previous = stored.get(body.previous_response_id);
  if (body.previous_response_id && !previous) {
    const message = `Previous response with id '${body.previous_response_id}' not found.`;
    return send(response, 400, apiError(message, 'previous_response_id', 'previous_response_not_found'));
  }
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input;
  const items = [...(previous?.items ?? []), ...input];
  const begun = responseObject(body, {});
  let done;
  try {
    const output = await outputOf(body.model, items);
    const incomplete = cut(output, body.max_output_tokens);
    const inputTokens = tokens(...items.map((item) => JSON.stringify(item.content ?? item.output ?? '')));
    const outputTokens = tokens(...output.map((item) => item.content?.[0].text ?? item.arguments ?? ''));
    done = {
      ...begun,
      status: incomplete ? 'incomplete' : 'completed',
      incomplete_details: incomplete ? { reason: 'max_output_tokens' } : null,
      output,
      usage: {
        input_tokens: inputTokens,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: outputTokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: inputTokens + outputTokens,
      },
    };
  } catch (error) {
    done = { ...begun, status: 'failed', error: { code: 'server_error', message: error.message } };
  }
  stored.set(done.id, { response: done, items: [...items, ...done.output] });
  if (!body.stream) return send(response, 200, done);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  let sequence = 0;
  for (const [type, fields] of events(begun, done)) {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`);
  }
  response.end();
  return undefined;
}

function* events(begun, done) {
  yield ['response.created', { response: begun }];
  yield ['response.in_progress', { response: begun }];
  for (const [output_index, item] of done.output.entries()) yield* itemEvents(output_index, item);
  yield [`response.${done.status}`, { response: done }];
}

function* itemEvents(output_index, item) {
  const at = { output_index, item_id: item.id };
  const begin = { ...item };
  if (item.status) begin.status = 'in_progress';
  if (item.type === 'message') begin.content = [];
  if (item.type === 'function_call' || item.type === 'mcp_call') begin.arguments = '';
  if (item.type === 'mcp_call') Object.assign(begin, { output: null, error: null });
  yield ['response.output_item.added', { output_index, item: begin }];
  if (item.type === 'message') {
    const [part] = item.content;
    const here = { ...at, content_index: 0 };
    yield ['response.content_part.added', { ...here, part: { ...part, text: '' } }];
    for (const delta of pieces(part.text)) yield ['response.output_text.delta', { ...here, delta, logprobs: [] }];
    yield ['response.output_text.done', { ...here, text: part.text, logprobs: [] }];
    yield ['response.content_part.done', { ...here, part }];
  } else if (item.type === 'function_call' || item.type === 'mcp_call') {
    const kind = item.type === 'mcp_call' ? 'mcp_call_arguments' : 'function_call_arguments';
    if (item.type === 'mcp_call') yield ['response.mcp_call.in_progress', at];
    for (const delta of pieces(item.arguments, /.{1,9}/g)) yield [`response.${kind}.delta`, { ...at, delta }];
    yield [`response.${kind}.done`, { ...at, arguments: item.arguments }];
    if (item.type === 'mcp_call') yield [`response.mcp_call.${item.status}`, at];
  }
  yield ['response.output_item.done', { output_index, item }];
}

serve({
  'GET /v1/models': ({ response }) => {
    const data = models.map((id) => ({ id, object: 'model', created: 1767225600, owned_by: 'shop' }));
    send(response, 200, { object: 'list', data });
  },
  'POST /v1/responses': create,
  'GET /v1/responses/:id': ({ response, params: { id } }) => {
    if (stored.has(id)) send(response, 200, stored.get(id).response);
    else send(response, 404, apiError(`Response with id '${id}' not found.`));
  },
});

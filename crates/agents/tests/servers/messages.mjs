// An agent behind Anthropic's Messages API: POST /v1/messages, GET /v1/models.
// The model of the request says how its calls are told:
//   shop         mcp_tool_use and mcp_tool_result blocks: the server runs the tools
//   shop-search  get_weather is told as a web search: server_tool_use and web_search_tool_result blocks
//   shop-client  asks the client to run the calls: tool_use blocks, stop_reason "tool_use"
import { pieces, send, serve, tokens, turn } from './shop.mjs';

const models = ['shop', 'shop-search', 'shop-client'];
let count = 0;
const newId = (prefix) => `${prefix}_${String(++count).padStart(8, '0')}`;

const apiError = (type, message) => ({ type: 'error', error: { type, message }, request_id: newId('req') });

const textOf = ({ content }) => {
  return typeof content === 'string'
    ? content
    : content.map((block) => (block.type === 'text' ? block.text : '')).join('');
};
const isUserText = ({ role, content }) => {
  return role === 'user' && (typeof content === 'string' || content.some(({ type }) => type === 'text'));
};

function callBlocks(model, { name, arguments: input, output, error }) {
  if (model === 'shop-search' && name === 'get_weather') {
    const id = newId('srvtoolu');
    const found = {
      type: 'web_search_result',
      url: `https://weather.example/${input.city}`,
      title: `Weather in ${input.city}`,
      encrypted_content: 'RW5jcnlwdGVk',
      page_age: null,
    };
    const content = error ? { type: 'web_search_tool_result_error', error_code: 'unavailable' } : [found];
    return [
      { type: 'server_tool_use', id, name: 'web_search', input: { query: `weather in ${input.city}` } },
      { type: 'web_search_tool_result', tool_use_id: id, content },
    ];
  }
  const id = newId('mcptoolu');
  const content = [{ type: 'text', text: error ?? JSON.stringify(output) }];
  return [
    { type: 'mcp_tool_use', id, name, server_name: 'shop', input },
    { type: 'mcp_tool_result', tool_use_id: id, is_error: error !== undefined, content },
  ];
}

// The content of the reply and its stop_reason.
function reply(model, { steps, text }, answered) {
  if (model === 'shop-client') {
    const step = steps[answered];
    if (!step) return [[{ type: 'text', text }], 'end_turn'];
    const blocks = step.map(({ name, arguments: input }) => ({ type: 'tool_use', id: newId('toolu'), name, input }));
    return [[{ type: 'text', text: 'Let me look.' }, ...blocks], 'tool_use'];
  }
  // The calls of a step come first, then their results.
  const calls = steps.flatMap((step) => {
    const pairs = step.map((call) => callBlocks(model, call));
    return [...pairs.map(([use]) => use), ...pairs.map(([, result]) => result)];
  });
  return [[...calls, { type: 'text', text }], 'end_turn'];
}

async function create({ response, body }) {
  if (!Array.isArray(body?.messages))
    return send(response, 400, apiError('invalid_request_error', 'messages: Field required'));
  const { model, messages, stream, max_tokens: maxTokens } = body;
  if (!maxTokens) return send(response, 400, apiError('invalid_request_error', 'max_tokens: Field required'));
  if (!models.includes(model)) return send(response, 404, apiError('not_found_error', `model: ${model}`));
  const message = {
    id: newId('msg'),
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: tokens(...messages.map(textOf)),
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 1,
    },
  };
  let answer;
  try {
    answer = await turn(messages.filter(isUserText).map(textOf));
  } catch (error) {
    if (!stream) return send(response, 500, apiError('api_error', error.message));
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    write(response, { type: 'message_start', message });
    write(response, apiError('api_error', error.message));
    return response.end();
  }
  if (answer.approval) answer.text = 'I cannot delete accounts.';
  const start = messages.findLastIndex(isUserText);
  const answered = messages.slice(start).filter(({ role }) => role === 'assistant').length;
  const [content, stopReason] = reply(model, answer, answered);
  const outputTokens = tokens(...content.map((block) => block.text ?? JSON.stringify(block.input ?? '')));
  if (!stream) {
    const usage = { ...message.usage, output_tokens: outputTokens };
    return send(response, 200, { ...message, content, stop_reason: stopReason, usage });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  write(response, { type: 'message_start', message });
  write(response, { type: 'ping' });
  for (const [index, block] of content.entries()) for (const event of blockEvents(index, block)) write(response, event);
  write(response, {
    type: 'message_delta',
    delta: { stop_reason: stopReason, stop_sequence: null },
    usage: { output_tokens: outputTokens },
  });
  write(response, { type: 'message_stop' });
  return response.end();
}

function* blockEvents(index, block) {
  const delta = (fields) => ({ type: 'content_block_delta', index, delta: fields });
  if (block.type === 'text') {
    yield { type: 'content_block_start', index, content_block: { ...block, text: '' } };
    for (const text of pieces(block.text)) yield delta({ type: 'text_delta', text });
  } else if (block.input) {
    yield { type: 'content_block_start', index, content_block: { ...block, input: {} } };
    yield delta({ type: 'input_json_delta', partial_json: '' });
    for (const piece of pieces(JSON.stringify(block.input), /.{1,9}/g))
      yield delta({ type: 'input_json_delta', partial_json: piece });
  } else {
    yield { type: 'content_block_start', index, content_block: block };
  }
  yield { type: 'content_block_stop', index };
}

const write = (response, event) => response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);

serve({
  'GET /v1/models': ({ response }) => {
    const data = models.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' }));
    send(response, 200, { data, has_more: false, first_id: models[0], last_id: models.at(-1) });
  },
  'POST /v1/messages': create,
});

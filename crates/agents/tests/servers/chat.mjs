// An agent behind OpenAI's Chat Completions API: POST /v1/chat/completions, GET /v1/models.
// The agent runs its own tools. The model of the request says how much it tells of them:
//   shop         the final text only
//   shop-calls   the calls as `tool_calls` of the final message, next to its text
//   shop-client  asks the client to run the calls, as a bare model does (finish_reason "tool_calls")
import { pieces, send, serve, tokens, turn } from './shop.mjs';

const models = ['shop', 'shop-calls', 'shop-client'];
let count = 0;

const textOf = ({ content }) => {
  return Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : (content ?? '');
};

const apiError = (message, type, param = null, code = null) => ({ error: { message, type, param, code } });

function toolCalls(steps) {
  return steps.flat().map(({ name, arguments: args }) => ({
    id: `call_${++count}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
}

// The message of the assistant and why it ended.
function messageOf(model, { steps, text }, answered) {
  const message = { role: 'assistant', content: text, refusal: null };
  if (model === 'shop-client' && steps.length > answered) {
    return [{ ...message, content: null, tool_calls: toolCalls([steps[answered]]) }, 'tool_calls'];
  }
  if (model === 'shop-calls' && steps.length > 0) message.tool_calls = toolCalls(steps);
  return [message, 'stop'];
}

function* deltas({ content, tool_calls: calls = [] }) {
  yield { role: 'assistant', content: calls.length > 0 ? null : '', refusal: null };
  for (const [
    index,
    {
      id,
      type,
      function: { name, arguments: args },
    },
  ] of calls.entries()) {
    yield { tool_calls: [{ index, id, type, function: { name, arguments: '' } }] };
    for (const piece of pieces(args, /.{1,9}/g)) yield { tool_calls: [{ index, function: { arguments: piece } }] };
  }
  for (const piece of pieces(content ?? '')) yield { content: piece };
}

async function complete({ response, body }) {
  if (!body?.model) return send(response, 400, apiError('you must provide a model parameter', 'invalid_request_error'));
  const { model, messages, stream, stream_options: options } = body;
  if (!models.includes(model)) {
    const message = `The model '${model}' does not exist`;
    return send(response, 404, apiError(message, 'invalid_request_error', null, 'model_not_found'));
  }
  if (!Array.isArray(messages)) {
    const message = "Missing required parameter: 'messages'.";
    return send(response, 400, apiError(message, 'invalid_request_error', 'messages', 'missing_required_parameter'));
  }
  const base = {
    id: `chatcmpl-${++count}`,
    created: 1767225600,
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_shop',
  };
  const chunk = (fields) =>
    response.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...fields })}\n\n`);
  let answer;
  try {
    answer = await turn(messages.filter(({ role }) => role === 'user').map(textOf));
  } catch (error) {
    if (!stream) return send(response, 500, apiError(error.message, 'server_error'));
    // The failure comes after the stream has begun, so the status is already sent.
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }] });
    response.end(`data: ${JSON.stringify(apiError(error.message, 'server_error'))}\n\n`);
    return undefined;
  }
  const start = messages.findLastIndex(({ role }) => role === 'user');
  const answered = messages.slice(start).filter(({ role }) => role === 'assistant').length;
  const [message, finishReason] = messageOf(model, answer, answered);
  const promptTokens = tokens(...messages.map(textOf));
  const completionTokens = tokens(message.content ?? '', JSON.stringify(message.tool_calls ?? ''));
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
  if (!stream) {
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finishReason }];
    return send(response, 200, { ...base, object: 'chat.completion', choices, usage });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  // With include_usage, every chunk has `usage`: null, but for the last, which has no choices.
  const more = options?.include_usage ? { usage: null } : {};
  for (const delta of deltas(message)) {
    chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null }], ...more });
  }
  chunk({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason }], ...more });
  if (options?.include_usage) chunk({ choices: [], usage });
  response.end('data: [DONE]\n\n');
  return undefined;
}

serve({
  'GET /v1/models': ({ response }) => {
    const data = models.map((id) => ({ id, object: 'model', created: 1767225600, owned_by: 'shop' }));
    send(response, 200, { object: 'list', data });
  },
  'POST /v1/chat/completions': complete,
});

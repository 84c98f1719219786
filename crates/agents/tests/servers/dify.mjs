// An app of Dify behind its service API: POST /v1/chat-messages, GET /v1/info, GET /v1/parameters, GET /v1/messages.
// The API key (`Authorization: Bearer KEY`) chooses the app:
//   app-chat   a chatbot: blocking and streaming, tells nothing of tools
//   app-agent  an agent by function calling: streaming only, tells its calls in agent_thought events
//   app-react  an agent by ReAct: the same, with observations as plain text, one call at a time
import { pieces, send, serve, tokens, turn } from './shop.mjs';

const modes = { 'app-chat': 'chat', 'app-agent': 'agent-chat', 'app-react': 'agent-chat' };
const conversations = new Map(); // id -> messages as GET /v1/messages lists them
let count = 0;
const newId = () => `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`;
const created_at = 1767225600;

const apiError = (status, code, message) => ({ status, code, message });

function modeOf({ request, response }) {
  const key = request.headers.authorization?.replace('Bearer ', '');
  if (modes[key]) return [key, modes[key]];
  send(response, 401, apiError(401, 'unauthorized', 'Access token is invalid'));
  return [];
}

function metadata(query, answer) {
  const prompt_tokens = tokens(query);
  const completion_tokens = tokens(answer);
  const usage = {
    prompt_tokens,
    prompt_unit_price: '0',
    prompt_price_unit: '0',
    prompt_price: '0',
    completion_tokens,
    completion_unit_price: '0',
    completion_price_unit: '0',
    completion_price: '0',
    total_tokens: prompt_tokens + completion_tokens,
    total_price: '0',
    currency: 'USD',
    latency: 0.01,
  };
  return { usage, retriever_resources: [] };
}

// The thoughts of the agent. Calls that were made together share one, their names separated by ";".
function thoughts(key, steps, text) {
  const together = key === 'app-react' ? steps.flat().map((call) => [call]) : steps;
  const observation = ({ output, error }) => (error ? `tool invoke error: ${error}` : JSON.stringify(output));
  const byName = (step, value) => JSON.stringify(Object.fromEntries(step.map((call) => [call.name, value(call)])));
  const told = together.map((step) => ({
    thought: '',
    observation: key === 'app-react' ? observation(step[0]) : byName(step, observation),
    tool: step.map(({ name }) => name).join(';'),
    tool_input: byName(step, (call) => call.arguments),
  }));
  return [...told, { thought: text, observation: '', tool: '', tool_input: '' }];
}

async function chat(exchange) {
  const { response, body } = exchange;
  const [key, mode] = modeOf(exchange);
  if (!mode) return undefined;
  const { query, user, response_mode: responseMode = 'blocking' } = body ?? {};
  if (!query || !user) {
    const missing = query ? 'user' : 'query';
    return send(
      response,
      400,
      apiError(400, 'invalid_param', `Missing required parameter ${missing} in the JSON body`),
    );
  }
  if (mode === 'agent-chat' && responseMode !== 'streaming') {
    return send(response, 400, apiError(400, 'invalid_param', 'Agent Chat App does not support blocking mode'));
  }
  if (body.conversation_id && !conversations.has(body.conversation_id)) {
    return send(response, 404, apiError(404, 'not_found', 'Conversation Not Exists.'));
  }
  const conversation_id = body.conversation_id || newId();
  const messages = conversations.get(conversation_id) ?? [];
  const [task_id, message_id] = [newId(), newId()];
  const base = { conversation_id, message_id, created_at, task_id };
  const stream = responseMode === 'streaming';
  const event = (name, fields) => response.write(`data: ${JSON.stringify({ event: name, ...base, ...fields })}\n\n`);
  if (stream) {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write('event: ping\n\n');
  }
  let answer;
  try {
    answer = await turn([...messages.map((message) => message.query), query]);
  } catch (error) {
    if (!stream) return send(response, 400, apiError(400, 'completion_request_error', error.message));
    const { task_id: _, ...known } = base;
    const failure = { event: 'error', ...known, ...apiError(400, 'completion_request_error', error.message) };
    return response.end(`data: ${JSON.stringify(failure)}\n\n`);
  }
  const text = answer.approval ? 'I cannot delete accounts.' : answer.text;
  const made = thoughts(key, answer.steps, text).map((thought, i) => ({
    id: newId(),
    position: i + 1,
    ...thought,
    message_files: [],
  }));
  const listed =
    mode === 'chat' ? [] : made.map((thought) => ({ ...thought, message_id, chain_id: null, created_at, files: [] }));
  messages.push({
    id: message_id,
    conversation_id,
    inputs: {},
    query,
    answer: text,
    status: 'normal',
    error: null,
    created_at,
    agent_thoughts: listed,
  });
  conversations.set(conversation_id, messages);
  if (!stream) {
    return send(response, 200, {
      event: 'message',
      task_id,
      id: message_id,
      message_id,
      conversation_id,
      mode,
      answer: text,
      metadata: metadata(query, text),
      created_at,
    });
  }
  if (mode === 'chat') {
    for (const piece of pieces(text)) event('message', { id: message_id, answer: piece, from_variable_selector: null });
  } else {
    for (const thought of made) {
      // A thought is sent when it begins, when its calls are known and when they are done, each time with the same id.
      event('agent_thought', { ...thought, thought: '', observation: '', tool: '', tool_input: '' });
      if (thought.tool) event('agent_thought', { ...thought, observation: '' });
      else for (const piece of pieces(text)) event('agent_message', { id: message_id, answer: piece });
      event('agent_thought', thought);
    }
  }
  event('message_end', { id: message_id, metadata: metadata(query, text), files: null });
  return response.end();
}

serve({
  'GET /v1/info': (exchange) => {
    const [, mode] = modeOf(exchange);
    if (mode)
      send(exchange.response, 200, {
        name: 'Shop',
        description: 'Orders and the weather',
        tags: [],
        mode,
        author_name: 'Shop',
      });
  },
  'GET /v1/parameters': (exchange) => {
    const [, mode] = modeOf(exchange);
    if (mode) send(exchange.response, 200, { opening_statement: '', suggested_questions: [], user_input_form: [] });
  },
  'GET /v1/messages': (exchange) => {
    const [, mode] = modeOf(exchange);
    if (!mode) return;
    const data = conversations.get(exchange.url.searchParams.get('conversation_id'));
    if (data) send(exchange.response, 200, { limit: 20, has_more: false, data });
    else send(exchange.response, 404, apiError(404, 'not_found', 'Conversation Not Exists.'));
  },
  'POST /v1/chat-messages': chat,
});

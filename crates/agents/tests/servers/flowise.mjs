// A flow of Flowise behind its prediction API: POST /api/v1/prediction/ID, GET /api/v1/ping.
// The flow `shop` tells the tools it used in `usedTools`; delete_account waits for a person (`action`).
import { afterApproval, pieces, send, serve, turn } from './shop.mjs';

const sessions = new Map(); // session id -> { told: the user's messages, approval: the call that waits }
let count = 0;
const newId = () => `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`;

const apiError = (statusCode, message) => ({ statusCode, success: false, message, stack: {} });

const usedTool = ({ name, arguments: toolInput, output, error }) => {
  return { tool: name, toolInput, toolOutput: error ? '' : JSON.stringify(output), ...(error ? { error } : {}) };
};

// What a person is asked, with the node of the flow that waits.
const approvalAction = () => ({
  id: newId(),
  mapping: { approve: 'Proceed', reject: 'Reject' },
  elements: [
    { type: 'agentflowv2-approve-button', label: 'Proceed' },
    { type: 'agentflowv2-reject-button', label: 'Reject' },
  ],
  data: { nodeId: 'humanInputAgentflow_0', nodeLabel: 'Human Input 0' },
});

async function answerOf(session, { question, humanInput }) {
  if (session.approval && humanInput) {
    const { approval } = session;
    delete session.approval;
    return afterApproval(approval, humanInput.type === 'proceed');
  }
  const answer = await turn([...session.told, question]);
  session.told.push(question);
  session.approval = answer.approval;
  return answer;
}

async function predict({ response, body, params: { id } }) {
  if (id !== 'shop') return send(response, 404, apiError(404, `Chatflow ${id} not found`));
  if (!body?.question && !body?.humanInput) {
    return send(response, 500, apiError(500, 'Error: predictionsServices.buildChatflow - question is required'));
  }
  const chatId = body.chatId ?? body.overrideConfig?.sessionId ?? newId();
  const sessionId = body.overrideConfig?.sessionId ?? chatId;
  if (!sessions.has(sessionId)) sessions.set(sessionId, { told: [] });
  const event = (name, data) => response.write(`message:\ndata:${JSON.stringify({ event: name, data })}\n\n`);
  if (body.streaming) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    event('start', '');
  }
  let answer;
  try {
    answer = await answerOf(sessions.get(sessionId), body);
  } catch (error) {
    if (!body.streaming)
      return send(response, 500, apiError(500, `Error: predictionsServices.buildChatflow - ${error.message}`));
    event('error', error.message);
    event('end', '[DONE]');
    return response.end();
  }
  const text = answer.question ?? answer.text;
  const usedTools = answer.steps.flat().map(usedTool);
  const action = answer.approval ? approvalAction() : undefined;
  const metadata = {
    chatId,
    chatMessageId: newId(),
    question: body.question ?? '',
    sessionId,
    memoryType: 'Buffer Memory',
  };
  if (!body.streaming) {
    const used = usedTools.length > 0 ? { usedTools } : {};
    return send(response, 200, { text, ...used, ...(action ? { action } : {}), ...metadata });
  }
  if (usedTools.length > 0) event('usedTools', usedTools);
  for (const piece of pieces(text)) event('token', piece);
  if (action) event('action', action);
  event('metadata', metadata);
  event('end', '[DONE]');
  return response.end();
}

serve({
  'GET /api/v1/ping': ({ response }) =>
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('pong'),
  'POST /api/v1/prediction/:id': predict,
});

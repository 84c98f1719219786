// A workflow of n8n behind its Chat Trigger: POST /webhook/ID/chat with { action: "sendMessage", sessionId, chatInput }.
// The ID chooses the response mode of the trigger and the options of the agent:
//   shop         the last node's output, with intermediateSteps
//   shop-plain   the last node's output, without
//   shop-array   all its items, as a list
//   shop-stream  streaming: a line of JSON for each chunk
import { pieces, send, serve, turn } from './shop.mjs';

const ids = ['shop', 'shop-plain', 'shop-array', 'shop-stream'];
const sessions = new Map();
let count = 0;

const intermediateStep = ({ name, arguments: toolInput, output, error }) => {
  const toolCallId = `call_${++count}`;
  return {
    action: {
      tool: name,
      toolInput,
      log: `Calling ${name} with input: ${JSON.stringify(toolInput)}`,
      messageLog: [],
      toolCallId,
      type: 'tool_call',
    },
    observation: error ? `There was an error: "${error}"` : JSON.stringify([output]),
  };
};

async function chat({ response, body, params: { id } }) {
  if (!ids.includes(id)) {
    const message = `The requested webhook "POST ${id}/chat" is not registered.`;
    const hint =
      'The workflow must be active for a production URL to run successfully. You can activate the workflow using the toggle in the top-right of the editor.';
    return send(response, 404, { code: 404, message, hint });
  }
  const { action, sessionId, chatInput } = body ?? {};
  if (action === 'loadPreviousSession') return send(response, 200, { data: [] });
  if (typeof chatInput !== 'string') return send(response, 500, { message: 'Error in workflow' });
  const told = sessions.get(sessionId) ?? [];
  const metadata = () => ({
    nodeId: '5b8c2f0e-3f0a-4a57-9a53-0d1d3d2f7a10',
    nodeName: 'AI Agent',
    itemIndex: 0,
    runIndex: 0,
    timestamp: 1767225600000,
  });
  const chunk = (type, content) =>
    response.write(
      `${JSON.stringify({ type, ...(content === undefined ? {} : { content }), metadata: metadata() })}\n`,
    );
  if (id === 'shop-stream') {
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
    chunk('begin');
  }
  let answer;
  try {
    answer = await turn([...told, chatInput]);
  } catch (error) {
    if (id !== 'shop-stream') return send(response, 500, { message: 'Error in workflow' });
    chunk('error', error.message);
    return response.end();
  }
  sessions.set(sessionId, [...told, chatInput]);
  const text = answer.approval ? 'I cannot delete accounts.' : answer.text;
  if (id === 'shop-stream') {
    for (const piece of pieces(text)) chunk('item', piece);
    chunk('end');
    return response.end();
  }
  const intermediateSteps = answer.steps.flat().map(intermediateStep);
  const output = id === 'shop-plain' ? { output: text } : { output: text, intermediateSteps };
  return send(response, 200, id === 'shop-array' ? [output] : output);
}

serve({
  'POST /webhook/:id/chat': chat,
  'GET /healthz': ({ response }) => send(response, 200, { status: 'ok' }),
});

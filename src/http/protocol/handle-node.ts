import type { ServerResponse } from 'node:http'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { NodeIncoming, NodeRequest } from './capture-node.ts'
import { sendAnswer } from './capture-node.ts'
import type { EffectKind, HandlerContext } from './context.ts'
import { answerEarly } from './early-node.ts'
import type { BegunRequest, Route } from './protect.ts'
import type { Tap } from './tap-node.ts'
import { tapResponse } from './tap-node.ts'
import { isThenable } from './thenable.ts'

/** What a handler on Node's own request and response is, and what becomes of what it throws. */
export interface NodeHandler<N, Tx> {
  handle(context: HandlerContext<Tx, EffectKind, 'optional'>): unknown
  threw(error: unknown, tap: Tap): void
  readonly route: Route<N, Tx>
}

/** From the claim to the end of the handler. A promise only where something has to be waited for. */
export function handleOnNode<N extends NodeRequest, Tx>(
  handler: NodeHandler<N, Tx>,
  incoming: NodeIncoming,
  request: N,
  response: ServerResponse,
): Awaitable<void> {
  const begun = handler.route.begin(incoming, request, incoming)
  return begun instanceof Promise
    ? begun.then((found) => carryOut(handler, found, response))
    : carryOut(handler, begun, response)
}

function carryOut<N, Tx>(
  { route, handle, threw }: NodeHandler<N, Tx>,
  begun: BegunRequest<Tx>,
  response: ServerResponse,
): Awaitable<void> {
  switch (begun.kind) {
    case 'unprotected':
      return ended(handle(null))
    case 'answer':
      return sendAnswer(response, begun.answer)
    case 'run': {
      const { maxAnswerBytes: maxBytes, buffered } = route
      const tap = tapResponse(response, { maxBytes, buffered, running: begun })
      answerEarly(response, begun.early)
      try {
        const over = ended(begun.inside(() => handle(begun.context)))
        return over instanceof Promise ? over.catch((error: unknown) => threw(error, tap)) : over
      } catch (error) {
        threw(error, tap)
      }
    }
  }
}

function ended(result: unknown): Awaitable<void> {
  return isThenable(result) ? Promise.resolve(result).then(nothing) : undefined
}

const nothing = () => undefined

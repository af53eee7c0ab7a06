import type { ServerResponse } from 'node:http'
import type { NodeIncoming, NodeRequest } from './capture-node.ts'
import { sendAnswer } from './capture-node.ts'
import type { EffectKind, HandlerContext } from './context.ts'
import { answerEarly } from './early-node.ts'
import type { Route } from './protect.ts'
import type { Tap } from './tap-node.ts'
import { tapResponse } from './tap-node.ts'

/** What a handler on Node's own request and response is, and what becomes of what it throws. */
export interface NodeHandler<N, Tx> {
  handle(context: HandlerContext<Tx, EffectKind, 'optional'>): unknown
  threw(error: unknown, tap: Tap): void
  readonly route: Route<N, Tx>
}

/** From the claim to the end of the handler. */
export async function handleOnNode<N extends NodeRequest, Tx>(
  { route, handle, threw }: NodeHandler<N, Tx>,
  incoming: NodeIncoming,
  request: N,
  response: ServerResponse,
): Promise<void> {
  const begun = await route.begin(incoming, request, incoming)
  switch (begun.kind) {
    case 'unprotected':
      await handle(null)
      return
    case 'answer':
      return sendAnswer(response, begun.answer)
    case 'run': {
      const { maxAnswerBytes: maxBytes, buffered } = route
      const tap = tapResponse(response, { maxBytes, buffered, running: begun })
      answerEarly(response, begun.early)
      try {
        await begun.inside(() => handle(begun.context))
      } catch (error) {
        threw(error, tap)
      }
    }
  }
}

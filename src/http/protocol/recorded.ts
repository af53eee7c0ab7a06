import type { Execution } from '../../ledger/present.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { Answer } from './exchange.ts'
import type { ProblemWriter } from './problem-writer.ts'
import type { StoredAnswer } from './record.ts'
import type { AskedAt, Told } from './replay.ts'
import { tellFailure, tellSuccess } from './replay.ts'

/** What a twin is answered: the record, with the rights of the current request; or the reason why there is none. */
export function recordedAnswer<N>(
  problems: ProblemWriter,
  execution: Execution<StoredAnswer>,
  asked: AskedAt<N>,
): Awaitable<Answer> {
  const { operation: name, route, target } = asked
  if (execution.kind === 'refused')
    return problems.refuse(execution.error, { name, whileRunning: route.whileRunning, target })
  const telling =
    execution.kind === 'failed'
      ? tellFailure(execution.answer, execution.failure, asked)
      : tellSuccess(execution.value, asked)
  return telling instanceof Promise
    ? telling.then((told) => toldAnswer(problems, told, target))
    : toldAnswer(problems, telling, target)
}

function toldAnswer(problems: ProblemWriter, told: Told, target: string): Answer {
  return told.kind === 'answer' ? told.answer : problems.write(told.situation, { instance: target, ...told.detail })
}

import { parentPort } from 'node:worker_threads'
import type { BodyQuestion } from '../protocol/large-body.ts'
import { answerTo } from './fingerprints.ts'

/** The thread of `createFingerprints`. */
parentPort?.on('message', ({ id, question }: { readonly id: number; readonly question: BodyQuestion }) => {
  parentPort?.postMessage(answerTo(id, question))
})

import { readTask } from '../../harness/program.ts'
import { createCaller } from '../caller.ts'
import { REPLAYED_KEYS } from '../task.ts'
import type { Round } from './task.ts'

/** The callers, in a process of their own: sends a round of requests when it gets one, and says when it is over. */
const { port } = readTask<{ readonly port: number }>()
const { client, ask } = createCaller(port)

process.on('message', ({ from, count, callers, replayed }: Round) => {
  let sent = 0
  const call = async () => {
    while (sent < count) {
      const number = from + sent++
      await ask(replayed ? number % REPLAYED_KEYS : number, replayed)
    }
  }
  void Promise.all(Array.from({ length: callers }, call)).then(() => process.send?.('done'))
})
process.once('disconnect', () => client.stop())
process.send?.('ready')

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { root } from '../../tools/command.ts'
import { createHttpClient } from '../harness/http-client.ts'
import { drive } from '../harness/load.ts'
import { createCpuMeter } from '../harness/process-cpu.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { serve } from '../harness/served.ts'

export interface MessagesTask {
  readonly guard: 'on' | 'off'
  /** Of the embedded store. */
  readonly folder: string
  readonly callers: number
  readonly warmUpMs: number
  readonly warmUpRequests: number
  readonly measureMs: number
}

/** People who are written to again and again; the text is new every time. */
const LEADS = 1_000
const KEY = 'key-of-the-benchmark'
const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${KEY}` }

/** The callers, beside the real server with its default settings: the embedded store, and the local mailbox. */
const task = readTask<MessagesTask>()
const env = { PORT: '0', ONCEONLY_DATA: task.folder, ONCEONLY_DEMO_KEY: KEY, ONCEONLY_GUARD: task.guard }
const { requests, figures } = await measured()
mustHold(requests)
answer(figures)

async function measured() {
  await using server = await serve({ program: join(root, 'service', 'main.ts'), env })
  const client = createHttpClient(server.port)
  const loaded = await drive({
    ...task,
    serverCpuMs: createCpuMeter(server.pid),
    request: async (number) => {
      const message = {
        recipientPhone: `+4915${1_000_000 + (number % LEADS)}`,
        message: `Your order ${number} is ready`,
      }
      const { status, body } = await client.post('/api/messages', headers, JSON.stringify(message))
      if (status !== 201) mustEqual('the status', status, 200)
      mustEqual('sent', body.startsWith('{"success":true,"status":"sent",'), true)
    },
  })
  client.stop()
  return loaded
}

/** Past every interface: each message is there, was sent, and holds its lock if there is a guard. */
function mustHold(messages: number): void {
  const db = new DatabaseSync(join(task.folder, 'onceonly.db'), { readOnly: true })
  const count = (text: string) => db.prepare(`SELECT count(*) AS n FROM ${text}`).get()?.['n']
  mustEqual('messages that were sent', count("messages WHERE status = 'sent'"), messages)
  mustEqual('messages', count('messages'), messages)
  const locks = count("onceonly_records WHERE operation = 'guard.messages'")
  mustEqual('locks', locks, task.guard === 'on' ? messages : 0)
  db.close()
}

import { parseArgs } from 'node:util'
import { checklist, describe, openAnswers } from '../../http/protocol/describe.ts'
import { configFile, loadConfig } from './config.ts'
import { operatorCommand } from './operator.ts'
import { iso, json, paint, plain, table } from './output.ts'
import { createProgress } from './progress.ts'
import type { Run } from './run.ts'
import { serverFindings } from './server-findings.ts'
import { Usage } from './usage.ts'

/** Rounds of one command; each looks at a bounded share of the records. */
const ROUNDS_MOST = 10_000

export const sweepCommand = operatorCommand({
  usage: 'sweep',
  about: 'Removes what is past its end now, instead of waiting for the servers, which do the same by themselves.',
  async run({ admin, actor }) {
    const progress = createProgress('rounds of the sweep:', null)
    const removed = await admin.act(actor, 'sweep', {}, async () => {
      let total = 0
      for (let round = 0; round < ROUNDS_MOST; round++) {
        const gone = await admin.sweep()
        total += gone
        if (gone === 0) break
        progress.step()
      }
      return total
    })
    progress.end()
    return { data: { removed }, text: `${removed} records are removed.` }
  },
})

export const migrateCommand = operatorCommand({
  usage: 'migrate',
  about:
    'Brings the tables of every room up to date. Servers do the same when they start; this is for deployments whose\nservers may not change the schema. Forward only, and safe while servers run.',
  async run({ admin, actor, confirm }) {
    await confirm('Change the schema of the store?')
    const rooms = await admin.migrate()
    await admin.act(actor, 'migrate', Object.fromEntries(rooms), async () => {})
    return { data: rooms, text: table(['room', 'version'], [...rooms], 'There are no tables.') }
  },
})

export const doctorCommand = operatorCommand({
  usage: 'doctor [--server URL]',
  about:
    'Is the store configured so that nothing acknowledged is lost: durability, eviction, clock, connections?\nExits with 1 when it is not.\n\n  --server URL   also what a running server finds, such as its folder or bucket of uploads; the token of operators\n                 is ONCEONLY_OPERATOR_TOKEN',
  options: { server: { type: 'string' } },
  async run({ admin, text }) {
    const own = await admin.doctor()
    const server = text('server')
    const told = server === undefined ? [] : await serverFindings(server, process.env['ONCEONLY_OPERATOR_TOKEN'])
    const findings = [...own, ...told.filter(({ name }) => !own.some((each) => each.name === name))]
    const colours = { ok: 'green', warning: 'yellow', danger: 'red' } as const
    const lines = findings.map(({ name, verdict, found, advice }) => {
      const text = `${paint(colours[verdict], verdict.padEnd(7))} ${name.padEnd(12)} ${plain(found)}`
      return advice === null ? text : `${text}\n        ${''.padEnd(12)} ${advice}`
    })
    const status = findings.some(({ verdict }) => verdict === 'danger') ? 1 : 0
    return { data: findings, text: lines.join('\n'), status }
  },
})

export const auditCommand = operatorCommand({
  usage: 'audit',
  about: 'What people did to records, messages and runs: who, when, from where, and what came of it; newest first.',
  async run({ admin, store, limit, since }) {
    if (admin.audit === null) throw new Usage(`The ${store.name} store keeps no audit: it needs SQL.`)
    const { rows: all } = await admin.audit.list({ limit })
    const rows = all.filter(({ at }) => since === undefined || at >= since)
    const lines = rows.map(({ at, by, via, what, result, target, note }) => [
      iso(at),
      by,
      via,
      what,
      result,
      target,
      note,
    ])
    return {
      data: rows,
      text: table(['at', 'who', 'via', 'what', 'result', 'target', 'note'], lines, 'Nobody did anything.'),
    }
  },
})

const CHECKLIST_HELP = `onceonly checklist [--config FILE] [--json]

The design checklist, answered for every route that the configuration exports as \`routes\`. Exits with 1 when an answer is
open, so that it can stand before a deploy.
`

/** Asks no store: it is about what is declared. */
export const checklistCommand: Run = async (args) => {
  const { values } = parsed(args)
  if (values.help === true) {
    process.stdout.write(CHECKLIST_HELP)
    return 0
  }
  const file = configFile(values.config)
  const { routes } = await loadConfig(file)
  if (!Array.isArray(routes)) throw new Usage(`${file} exports no \`routes\`.`)
  const open = openAnswers(routes)
  if (values.json === true) {
    const told = routes.map((route) => ({ method: route.method, path: route.path, answers: describe(route) }))
    process.stdout.write(`${json({ routes: told, open })}\n`)
  } else {
    const width = Math.max(...Object.values(checklist).map((question) => question.length))
    for (const route of routes) {
      const lines = describe(route).map(({ question, answer }) => {
        return `  ${question.padEnd(width)}  ${answer === null ? paint('red', 'OPEN') : plain(answer)}`
      })
      process.stdout.write(`${paint('bold', `${route.method} ${route.path}`)}\n${lines.join('\n')}\n`)
    }
    process.stdout.write(`${routes.length} routes, ${open.length} answers are open\n`)
  }
  return open.length === 0 ? 0 : 1
}

function parsed(args: readonly string[]) {
  try {
    const options = {
      config: { type: 'string' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    } as const
    return parseArgs({ args: [...args], options })
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error))
  }
}

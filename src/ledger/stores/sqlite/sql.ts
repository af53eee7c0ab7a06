import { existsSync } from 'node:fs'
import { OnceError } from '../../core/errors.ts'
import { limits, MINUTE } from '../../core/limits.ts'
import { plainTexts } from '../../store/encryption/plain.ts'
import { tablesTooOld } from '../../store/migrations.ts'
import { runAtOnce } from '../../store/script.ts'
import type { Migration, QueryHow, Script, SqlRow, SqlSeam, SqlValue } from '../../store/sql.ts'
import { checkRoomTopic } from '../../store/sql.ts'
import { type Connection, NOW_SQL, wakeSql } from './connection.ts'
import { sqlite } from './dialect.ts'
import type { Engine } from './engine.ts'
import { isReadonly } from './errors.ts'
import { LEDGER_ROOM, migrate, ownMigrations, pendingIn, pendingSql } from './schema.ts'
import type { Watchers } from './watch.ts'

const CALL = { timeoutMs: limits.storeCallMs }
/** Several processes may start at once, and each of them migrates in its turn. */
const MIGRATE_CALL = { timeoutMs: 1 * MINUTE }

export function createSqlSeam(engine: Engine, watchers: Watchers): SqlSeam {
  return {
    ...plainTexts,
    dialect: sqlite,
    now: NOW_SQL,
    wake: (topic) => wakeSql(checkRoomTopic(topic)),
    listen: (topic, wake) => watchers.listen(checkRoomTopic(topic), wake),
    migrate: async (room, migrations) => {
      if (room.trim() === '' || room === LEDGER_ROOM) {
        throw new OnceError('bad_option', `A room cannot be named \`${room}\`.`)
      }
      const known = migrations.map(statementsOf)
      const pending = await engine.read(MIGRATE_CALL, ({ db }) => pendingIn(db, room, known))
      if (pending.length === 0) return
      if (engine.migrate === 'check') throw tablesTooOld(room, pending)
      await engine.write('batch', MIGRATE_CALL, ({ db }) => migrate(db, room, known))
    },
    pendingSql: async (rooms) => {
      const own = Object.entries(rooms).map(([room, migrations]) => [room, migrations.map(statementsOf)] as const)
      const all = { [LEDGER_ROOM]: ownMigrations, ...Object.fromEntries(own) }
      if (!existsSync(engine.path)) return pendingSql(null, all)
      // Not through the engine, which would first create the tables that are asked about.
      const db = engine.openFile(engine.path, { readOnly: true })
      try {
        return pendingSql(db, all)
      } finally {
        db.close()
      }
    },
    query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = [], { quiet = false }: QueryHow = {}) => {
      if (mayOnlyRead.test(text)) {
        const answer = await engine.read(CALL, ({ statements }) => {
          try {
            return statements.query<Row>(text, values)
          } catch (error) {
            // `WITH … INSERT` looks like a question and is none.
            if (isReadonly(error)) return null
            throw error
          }
        })
        if (answer !== null) return answer
      }
      const work = ({ statements }: Connection) => statements.query<Row>(text, values)
      return await (quiet ? engine.writeQuietly(CALL, work) : engine.write('batch', CALL, work))
    },
    script: <T>(begin: () => Script<T>) =>
      engine.write('batch', CALL, ({ statements }) => runAtOnce(begin(), statements.query)),
  }
}

const mayOnlyRead = /^\s*(?:select|with|values)\b/i

function statementsOf({ version, oldestCode, up }: Migration) {
  return { version, oldestCode, statements: up(sqlite) }
}

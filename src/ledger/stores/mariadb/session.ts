import { OnceError } from '../../core/errors.ts'
import type { Connection } from './connection.ts'

const ASKED = 'SELECT DATABASE() AS chosen, @@autocommit AS autocommit, @@character_set_client AS letters'

/** Settings of a pool that would break the store later, where the server's own words say little about the cause. */
export async function checkSession(connection: Connection): Promise<void> {
  const [row] = await connection.query(ASKED)
  if (row?.['chosen'] === null) throw refused('selects no database. Pass `database` to `createPool`.')
  // A read would begin a transaction, and the next reads would not see what others commit.
  if (Number(row?.['autocommit']) !== 1) {
    throw refused('opens connections where `autocommit` is off. Leave it on: the store begins its transactions itself.')
  }
  if (row?.['letters'] !== 'utf8mb4') {
    const found = `opens connections with the character set \`${String(row?.['letters'])}\``
    throw refused(`${found}, which cannot write every text. Use \`utf8mb4\`, the default of \`createPool\`.`)
  }
}

function refused(what: string): OnceError {
  return new OnceError('bad_option', `The pool of mariadbStore ${what}`)
}

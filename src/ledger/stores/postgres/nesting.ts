import { OnceError } from '../../core/errors.ts'
import type { StatementPart, StatementParts } from '../../store/savepoints.ts'
import type { TransactionControl } from '../../store/sql-text.ts'
import type { PgQuery, PgResult } from './driver.ts'
import { isAborted } from './errors.ts'

export type Send = (query: PgQuery, values?: unknown[]) => Promise<PgResult>

/**
 * Statements that begin and end transactions, and savepoints of the user's, as parts of our transaction. Every part is a
 * savepoint under a name of ours, so that no name of the user's hides another.
 */
export type Nesting = (control: TransactionControl, opened: StatementParts) => Promise<PgResult>

export function createNesting(send: Send): Nesting {
  let count = 0

  async function open(opened: StatementParts, name: string | null): Promise<PgResult> {
    const part: StatementPart = { at: `onceonly_nested_${++count}`, name }
    // At once: whatever is called before the server has answered is inside of it.
    opened.push(part)
    try {
      return await send({ text: `SAVEPOINT ${part.at}` })
    } catch (error) {
      const place = opened.indexOf(part)
      if (place !== -1) opened.splice(place)
      throw error
    }
  }

  async function keep({ at }: StatementPart): Promise<PgResult> {
    try {
      return await send({ text: `RELEASE SAVEPOINT ${at}` })
    } catch (error) {
      if (!isAborted(error)) throw error
      // As the server does when it is asked to commit a transaction in which a statement has failed.
      return undo({ at })
    }
  }

  async function undo({ at }: Pick<StatementPart, 'at'>): Promise<PgResult> {
    await send({ text: `ROLLBACK TO SAVEPOINT ${at}` })
    const result = await send({ text: `RELEASE SAVEPOINT ${at}` })
    return Object.assign(result, { command: 'ROLLBACK' })
  }

  /** Takes the part out of the list, with all that were opened inside of it. */
  function closing(opened: StatementParts, place: number): StatementPart {
    const [part] = opened.splice(place)
    return part as StatementPart
  }

  return async (control, opened) => {
    const begun = opened.findLastIndex(({ name }) => name === null)
    switch (control.kind) {
      case 'begin': {
        const { isolation } = control
        if (isolation !== null && !/^read/i.test(isolation)) {
          throw refused(`A nested transaction cannot be ${isolation.toUpperCase()}: the transaction is READ COMMITTED.`)
        }
        return Object.assign(await open(opened, null), { command: 'BEGIN' })
      }
      case 'commit': {
        if (begun === -1) throw refused('COMMIT without a BEGIN in this part of the transaction.')
        const result = await keep(closing(opened, begun))
        return result.command === 'ROLLBACK' ? result : Object.assign(result, { command: 'COMMIT' })
      }
      case 'rollback':
        if (begun === -1) throw refused('ROLLBACK without a BEGIN in this part of the transaction.')
        return undo(closing(opened, begun))
      case 'savepoint':
        return open(opened, control.name)
      case 'release':
      case 'rollback_to': {
        const place = opened.findLastIndex(({ name }) => name === control.name)
        const part = opened[place]
        if (part === undefined || place < begun) throw refused(`There is no savepoint \`${control.name}\` here.`)
        if (control.kind === 'rollback_to') {
          opened.splice(place + 1)
          return send({ text: `ROLLBACK TO SAVEPOINT ${part.at}` })
        }
        return send({ text: `RELEASE SAVEPOINT ${closing(opened, place).at}` })
      }
      case 'refused':
        throw refused(`\`${control.statement}\` cannot be sent inside of a transaction in this form.`)
    }
  }
}

function refused(message: string): OnceError {
  return new OnceError('bad_option', message)
}

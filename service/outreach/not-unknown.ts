import { OnceError } from 'onceonly'

export function notUnknown(text: string): OnceError<'not_resolvable'> {
  return new OnceError('not_resolvable', text, { next: 'Look at the state of the run first.' })
}

/** What is wrong with one argument. */
export interface ArgumentFault {
  readonly field: string
  readonly detail: string
}

/** The arguments are wrong: nothing was read or changed. */
export class BadArguments extends Error {
  readonly faults: readonly ArgumentFault[]
  constructor(faults: readonly ArgumentFault[]) {
    super(faults.map(({ field, detail }) => `${field} ${detail}`).join('; '))
    this.faults = faults
  }
}

/** The command cannot be run: by this role, on this store, or because its subject does not exist. */
export class CommandRefused extends Error {
  readonly why: 'forbidden' | 'not_found' | 'not_available'
  constructor(why: CommandRefused['why'], message: string) {
    super(message)
    this.why = why
  }
}

export function notFound(message: string): CommandRefused {
  return new CommandRefused('not_found', message)
}

export function badArgument(field: string, detail: string): BadArguments {
  return new BadArguments([{ field, detail }])
}

/** Shows how far a long work has come: a bar on a terminal, a line now and then elsewhere. Written beside the output. */
export interface Progress {
  /** With the share that is done, from 0 to 1, a bar is shown. */
  step(share?: number): void
  end(): void
}

const WIDTH = 30
const LINES = 10

/** Without a total, it only counts. */
export function createProgress(what: string, total: number | null, to: NodeJS.WriteStream = process.stderr): Progress {
  let done = 0
  let shown = 0
  return {
    step(share) {
      done += 1
      if (share !== undefined) {
        const full = Math.round(Math.min(1, share) * WIDTH)
        const text = `${what} [${'#'.repeat(full)}${' '.repeat(WIDTH - full)}] ${Math.floor(Math.min(1, share) * 100)} %`
        if (to.isTTY) to.write(`\r${text}`)
        else if (Math.floor(share * LINES) > shown) {
          shown = Math.floor(share * LINES)
          to.write(`${text}\n`)
        }
      } else if (total === null) {
        if (to.isTTY) to.write(`\r${what} ${done}`)
      } else if (to.isTTY) {
        const full = Math.round((done / total) * WIDTH)
        to.write(`\r${what} [${'#'.repeat(full)}${' '.repeat(WIDTH - full)}] ${done}/${total}`)
      } else if (Math.floor((done / total) * LINES) > shown) {
        shown = Math.floor((done / total) * LINES)
        to.write(`${what}: ${done}/${total}\n`)
      }
    },
    end() {
      if (to.isTTY && done > 0) to.write('\n')
    },
  }
}

import { type FSWatcher, watch } from 'node:fs'

/** Hears from the operating system that a file was written to, by any process. A hint: some file systems never say so. */
export interface FileWatch {
  isArmed(): boolean
  arm(): void
  disarm(): void
}

export type MakeFileWatch = (path: string, changed: () => void) => FileWatch

export const createFileWatch: MakeFileWatch = (path, changed) => {
  let watcher: FSWatcher | null = null

  function disarm(): void {
    watcher?.close()
    watcher = null
  }

  return {
    isArmed: () => watcher !== null,
    arm() {
      if (watcher !== null) return
      try {
        watcher = watch(path, { persistent: false }, (event) => {
          // The file has another name, or is gone: its successor is watched from the next time on.
          if (event === 'rename') disarm()
          changed()
        })
        watcher.on('error', disarm)
      } catch {
        // No file yet, or too many watches on this machine: polls find what changed.
      }
    },
    disarm,
  }
}

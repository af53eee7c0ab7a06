import { useState } from 'preact/hooks'
import { Refused } from './ask.ts'
import { csvOf, saveFile } from './export.ts'

type Format = 'csv' | 'json'

interface ExportButtonsProps {
  /** Of the file, without its ending. */
  readonly name: string
  readonly rows: () => Promise<readonly unknown[]>
}

/** All rows that fit the filters, as a file. */
export function ExportButtons({ name, rows }: ExportButtonsProps) {
  const [busy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<string | null>(null)
  const save = async (format: Format) => {
    setBusy(true)
    setRefusal(null)
    try {
      const all = await rows()
      const file = `${name}.${format}`
      if (format === 'csv') saveFile(file, 'text/csv;charset=utf-8', csvOf(all))
      else saveFile(file, 'application/json', JSON.stringify(all, null, 2))
    } catch (error) {
      setRefusal(error instanceof Refused ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div class="export">
      {refusal === null ? null : (
        <span class="bad" role="alert">
          {refusal}
        </span>
      )}
      <span class="label" aria-hidden="true">
        Export
      </span>
      {(['csv', 'json'] as const).map((format) => (
        <button
          key={format}
          type="button"
          disabled={busy}
          aria-label={`Export ${name} as ${format.toUpperCase()}`}
          onClick={() => void save(format)}
        >
          {format.toUpperCase()}
        </button>
      ))}
    </div>
  )
}

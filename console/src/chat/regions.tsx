import type { Region } from './api.ts'

interface RegionsProps {
  readonly regions: readonly Region[]
  /** Null where the server does not let this page do it. */
  readonly link: ((region: string, state: Region['state']) => void) | null
}

/** The regions, and the switch that cuts each off from the others. */
export function Regions({ regions, link }: RegionsProps) {
  return (
    <div class="regions" role="group" aria-label="Regions">
      {regions.map(({ region, state }) => (
        <div class="region" key={region} data-state={state}>
          <b>{region}</b>
          <span class="soft">{state === 'cut' ? 'cut off' : 'joined'}</span>
          {link === null ? null : (
            <button
              type="button"
              aria-label={`${state === 'cut' ? 'Heal' : 'Cut'} ${region}`}
              onClick={() => link(region, state === 'cut' ? 'joined' : 'cut')}
            >
              {state === 'cut' ? 'Heal' : 'Cut'}
            </button>
          )}
        </div>
      ))}
    </div>
  )
}

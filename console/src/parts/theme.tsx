import { useState } from 'preact/hooks'

const choices = ['system', 'light', 'dark'] as const
type Choice = (typeof choices)[number]

const place = 'onceonly-theme'
const system = matchMedia('(prefers-color-scheme: dark)')

function chosen(): Choice {
  try {
    const kept = localStorage.getItem(place)
    return choices.find((choice) => choice === kept) ?? 'system'
  } catch {
    // A browser that keeps nothing still has a system theme.
    return 'system'
  }
}

function apply(choice: Choice): void {
  const isDark = choice === 'dark' || (choice === 'system' && system.matches)
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light'
}

/** Called before anything is drawn; follows the system until the user chooses a theme. */
export function beginTheme(): void {
  apply(chosen())
  system.addEventListener('change', () => apply(chosen()))
}

const signs: Readonly<Record<Choice, string>> = { system: '◐', light: '○', dark: '●' }

export function ThemeSwitch() {
  const [choice, setChoice] = useState(chosen)
  const next = choices[(choices.indexOf(choice) + 1) % choices.length] ?? 'system'
  const turn = () => {
    try {
      localStorage.setItem(place, next)
    } catch {
      // It lasts as long as this page, then.
    }
    setChoice(next)
    apply(next)
  }
  return (
    <button type="button" class="quiet icon" onClick={turn} title={`Colours: ${choice}`}>
      <span aria-hidden="true">{signs[choice]}</span>
      <span class="visually-hidden">{`Colours: ${choice}; switch to ${next}`}</span>
    </button>
  )
}

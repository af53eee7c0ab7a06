import { render } from 'preact'
import { Empty } from './parts/states.tsx'
import { beginTheme } from './parts/theme.tsx'

beginTheme()

const place = document.getElementById('page')
if (place !== null) render(<Empty title="Nobody is here yet" />, place)

import { render } from 'preact'
import { App } from './console/app.tsx'
import { followLinks } from './parts/router.ts'
import { beginTheme } from './parts/theme.tsx'

beginTheme()
followLinks()

const place = document.getElementById('page')
if (place !== null) render(<App />, place)

import { render } from 'preact'
import { HomeApp } from './home/app.tsx'
import { beginTheme } from './parts/theme.tsx'

beginTheme()

const place = document.getElementById('page')
if (place !== null) render(<HomeApp />, place)

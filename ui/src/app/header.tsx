import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { VIEWS, type View } from '../model/query.ts'
import { isolated } from '../model/visible.ts'
import { usePage } from '../parts/page.ts'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { useShortcut } from '../parts/shortcuts.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

export const VIEW_TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  lanes: 'Lanes',
  object: 'Object',
  tail: 'Live',
  sources: 'Top sources',
  clusters: 'Clusters',
}

const NEXT_THEME: Readonly<Record<Theme, Theme>> = {
  system: 'light',
  light: 'dark',
  dark: 'system',
}

export interface HeaderProps {
  /** Undefined if there is no token to remove. */
  readonly onSignOut: (() => void) | undefined
  readonly onHelp: () => void
}

export function Header({ onSignOut, onHelp }: HeaderProps): JSX.Element {
  const { query, caller } = usePage()
  useShortcut({ keys: ['?'], title: 'Show keyboard shortcuts', run: onHelp })
  return (
    <header class="header">
      <nav aria-label="Views">
        {VIEWS.map((view) => (
          <QueryLink key={view} to={{ view }} isCurrent={query.view === view}>
            {VIEW_TITLES[view]}
          </QueryLink>
        ))}
      </nav>
      <div class="header-user">
        <span title={caller.groups.map(isolated).join('\n')}>
          <PlainText text={caller.name} />
        </span>
        <button type="button" onClick={onHelp} title="Keyboard shortcuts (?)">
          Shortcuts
        </button>
        <ThemeButton />
        {onSignOut !== undefined && (
          <button type="button" onClick={onSignOut}>
            Sign out
          </button>
        )}
      </div>
    </header>
  )
}

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme)
  const choose = (): void => {
    const next = NEXT_THEME[theme]
    chooseTheme(next)
    setTheme(next)
  }
  return (
    <button type="button" onClick={choose} title="Switch theme: system, light or dark">
      Theme: {theme}
    </button>
  )
}

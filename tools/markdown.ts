/** Reads what tests need from Markdown pages: headings as anchors, links, and fenced blocks. */

export interface Link {
  readonly line: number
  /** The target as written, such as `../how-to/size.md#memory`. */
  readonly target: string
}

export interface Block {
  /** The line of the opening fence, from 1. */
  readonly line: number
  /** What is written behind the fence, such as `sh`; empty where there is nothing. */
  readonly language: string
  readonly text: string
}

/** The anchors of a page's headings, as GitHub makes them: a repeated heading gets a number. */
export function anchorsOf(page: string): readonly string[] {
  const seen = new Map<string, number>()
  return withoutBlocks(page)
    .filter((line) => /^#{1,6} /.test(line))
    .map((line) => {
      const slug = slugOf(line.replace(/^#+ /, ''))
      const count = seen.get(slug) ?? 0
      seen.set(slug, count + 1)
      return count === 0 ? slug : `${slug}-${count}`
    })
}

/** Links and images outside fenced blocks and code, without those to other sites. */
export function linksOf(page: string): readonly Link[] {
  return withoutBlocks(page).flatMap((line, index) =>
    [...line.replaceAll(/`[^`]*`/g, 'code').matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => ({ line: index + 1, target }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  )
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = []
  let open: { line: number; language: string; lines: string[] } | undefined
  for (const [index, line] of page.split('\n').entries()) {
    const [, language] = /^```(.*)$/.exec(line) ?? []
    if (open === undefined) {
      if (language !== undefined) open = { line: index + 1, language: language.trim(), lines: [] }
    } else if (line === '```') {
      blocks.push({ line: open.line, language: open.language, text: textOf(open.lines) })
      open = undefined
    } else {
      open.lines.push(line)
    }
  }
  return blocks
}

/** The first lines of blocks that are indented, which `blocksOf` does not find. */
export function indentedBlocksOf(page: string): readonly number[] {
  const lines = withoutBlocks(page)
  return lines.flatMap((line, index) => {
    const isFirst = /^( {4}|\t)/.test(line) && (lines[index - 1] ?? '').trim() === ''
    return isFirst || /^\s+(```|~~~)/.test(line) ? [index + 1] : []
  })
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

function slugOf(title: string): string {
  return title
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** All lines; those of fenced blocks are empty, so that line numbers stay. */
function withoutBlocks(page: string): readonly string[] {
  let isInside = false
  return page.split('\n').map((line) => {
    const isFence = line.startsWith('```')
    if (isFence) isInside = !isInside
    return isInside || isFence ? '' : line
  })
}

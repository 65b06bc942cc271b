// SPDX-License-Identifier: Apache-2.0
// Creates elements without a framework. Texts become text nodes: data never becomes markup.

export type Child = Node | string | number | null | undefined | false | Child[];

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

/** Creates an element from attributes, `on...` listeners and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Replaces the children of an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** The value of a custom property of the page's style, such as a colour. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * A bar that shows a share of a whole. Its width is set by script, because the policy forbids style
 * attributes.
 */
export function bar(share: number, colour?: string): HTMLElement {
  const inner = h("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(100, share))}%`;
  if (colour) inner.style.background = colour;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/** A coloured square. */
export function swatch(colour: string): HTMLElement {
  const square = h("span", { class: "swatch", "aria-hidden": "true" });
  square.style.background = colour;
  return square;
}

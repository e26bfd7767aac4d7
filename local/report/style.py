# SPDX-License-Identifier: Apache-2.0
"""Style and script of the page: light and dark, phone and paper; tables that sort."""

from local.report import draw

_LIGHT, _DARK = draw.css()

CSS = (
    f":root{{color-scheme:light dark;{_LIGHT}--box:#f4f6f8;--link:#0a58a0;--good:#0a6b4f;"
    "--bad:#a3262f}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}--box:#1f252c;--link:#7db9f2;"
    "--good:#4fd0a5;--bad:#ff8f98}}"
    """
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
a{color:var(--link)}
main{max-width:92rem;margin:0 auto;padding:.6rem 1rem}
h1{font-size:1.5rem;line-height:1.2;margin:.2rem 0}
.front p,.front ul{margin:.3rem 0;max-width:none}.front h2{all:unset;display:block;font-weight:600}
.front .box{font-size:.92rem;margin:.6rem 0}
.verdicts{margin:.5rem 0;line-height:1.3}.verdicts td span,.verdicts b{display:block}
.verdicts small{display:block;color:var(--soft);line-height:1.2}
.verdicts td:nth-child(2){width:21rem}.bad{color:var(--bad)}.good{color:var(--good)}
.pair{display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:center}
.pair span{display:flex;gap:.4rem;align-items:center}
.three{margin:.8rem 0}
.specialists>summary{font-size:1.15rem;padding:.5rem 0}
@media (max-width:48rem){
 .verdicts,.verdicts tbody,.verdicts tr,.verdicts th,.verdicts td{display:block;padding:0;border:0}
 .verdicts thead{display:none}.verdicts tr{border-bottom:1px solid var(--grid);padding:.4rem 0}
 .verdicts tbody th,.verdicts td[data-label],.verdicts b,.verdicts td span{display:inline}
 .verdicts tbody th::after{content:": "}.verdicts td:nth-child(2){display:inline}
 .verdicts td[data-label]::before{content:attr(data-label)": ";color:var(--soft)}
 .verdicts td[data-label]::after,.verdicts td span:not(:last-child)::after{content:"; "}
 .verdicts td[data-label]:last-child::after{content:""}
 .verdicts tbody th{max-width:none}}
h2{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:.7rem;border-top:2px solid var(--grid)}
h3{font-size:1.08rem;margin:1.8rem 0 .4rem}
h4{font-size:1rem;margin:1.3rem 0 .3rem}
h1,h2,h3,h4,p,li,dd,figcaption,code{overflow-wrap:anywhere}
p,.prose li{max-width:48rem}
.soft{color:var(--soft)}
nav{background:var(--box);border-radius:.5rem;padding:.7rem 1rem;font-size:.93rem}
nav details{margin:0}nav li summary{font-weight:400;color:var(--soft)}
nav ul{list-style:none;margin:.3rem 0 0;padding:0}nav ul ul{padding-left:.9rem;margin:0}
nav li{padding:.13rem 0}
@media screen and (min-width:60rem){nav>details>ul{columns:3;column-gap:2rem}}
.box{background:var(--box);border-radius:.5rem;padding:.7rem 1rem;margin:.8rem 0}
.box h3{margin:.1rem 0 .3rem}.box ul{margin:.3rem 0;padding-left:1.2rem}
.warn{border-left:.3rem solid var(--bad)}.alarm{color:var(--bad)}
.scroll{overflow-x:auto;margin:.6rem 0;border:1px solid var(--grid);border-radius:.4rem;
 max-width:100%}
.scroll:focus-visible,button:focus-visible,a:focus-visible,summary:focus-visible{
 outline:3px solid var(--link);outline-offset:1px}
table{border-collapse:collapse;width:100%;font-size:.82rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .4rem;text-align:left;border-bottom:1px solid var(--grid);vertical-align:top}
td,th{overflow-wrap:break-word}th.n{white-space:nowrap}
.paths :is(td,th){overflow-wrap:anywhere}
td.n span{white-space:nowrap;font-size:.92em;color:var(--soft)}
.terms{font-size:.82rem;margin:.2rem 0;color:var(--soft)}
.cards{display:block}.cards dd{margin:0 0 .8rem}.cards p{margin:.2rem 0}
tr:last-child>*{border-bottom:0}
tbody th{font-weight:600;min-width:5.5rem;max-width:16rem}tbody th.n{max-width:none}
td:has(audio){vertical-align:middle}
thead th{background:var(--box);vertical-align:bottom;font-weight:600;min-width:3.2rem;
 overflow-wrap:normal}
th button{all:unset;cursor:pointer;display:inline-block;padding:.1rem 0}
th button{white-space:normal}
th button{text-decoration:underline dotted var(--soft);text-underline-offset:.2em}
th[aria-sort=ascending] button::after{content:"\\00a0▲";color:var(--link)}
th[aria-sort=descending] button::after{content:"\\00a0▼";color:var(--link)}
.best,.worst{display:block;white-space:normal;max-width:10rem;font-size:.8rem;font-weight:600}
.best{color:var(--good)}.worst{color:var(--bad)}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));
 gap:1.2rem}
figure{margin:0;padding:.7rem;border:1px solid var(--grid);border-radius:.5rem;min-width:0}
figure svg{display:block;width:100%;height:auto;max-width:34rem;margin:0 auto}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}
figcaption{font-size:.88rem;margin-top:.5rem}figcaption b{display:block}
audio{width:13rem;height:2.2rem;display:block}
details{margin:.6rem 0}summary{cursor:pointer;font-weight:600}
dl{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(0,1fr);gap:.25rem 1rem;
 margin:.6rem 0}dt{font-weight:600}dd{margin:0}
code{font-size:.88em}
@page{size:A4;margin:12mm}@media print{nav,td:has(audio),th.fixed{display:none}body{font-size:10pt}
 .scroll{overflow:visible;border:0}table{font-size:6pt}
 td.n span{display:block}th,td{hyphens:auto}.terms,.pair{display:none}
 main{padding:0}.verdicts{font-size:9pt}th button{text-decoration:none}
 thead th,tbody th{min-width:0}th,td{padding:.1rem .2rem}.best,.worst{font-size:1em}
 code{overflow-wrap:anywhere}figure,tr,.box{break-inside:avoid}h2,h3,h4{break-after:avoid}
 th button::after{content:""!important}
 .pictures{grid-template-columns:repeat(2,1fr)}
 .specialists:not([open])>summary::after{content:": not printed, as they were folded"}}
"""
)

# A click or Enter on a heading sorts by that column; numbers by their value, words as words, and
# what has no value (not measured, not defined, a dash) stays last.
JS = """
"use strict";
document.querySelectorAll("table[data-sortable]").forEach(function (table) {
  var body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  function key(row, column) {
    var text = row.cells[column].textContent.trim().replace(/\\u2212/g, "-");
    if (/^(not (measured|defined)|[-\\u2013]$)/.test(text)) { return null; }
    var match = /^(-?)(?:(\\d+(?:\\.\\d+)?)|\\u221e)/.exec(text);
    if (!match) { return text; }
    return (match[1] ? -1 : 1) * (match[2] === undefined ? Infinity : parseFloat(match[2]));
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a < b ? -1 : a > b ? 1 : 0; }
    return String(a).localeCompare(String(b), undefined, {numeric: true});
  }
  heads.forEach(function (head, column) {
    var button = head.querySelector("button");
    if (!button) { return; }
    button.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(function (h) { if (h.hasAttribute("aria-sort")) {
        h.setAttribute("aria-sort", "none"); } });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      Array.from(body.rows).map(function (row) { return [key(row, column), row]; })
        .sort(function (x, y) {
          if (x[0] === null || y[0] === null) { return (x[0] === null) - (y[0] === null); }
          return (down ? -1 : 1) * compare(x[0], y[0]); })
        .forEach(function (pair) { body.appendChild(pair[1]); });
    });
  });
});
function reveal() {  // a link into what is folded opens it
  var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (var at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") { at.open = true; }
  }
  if (target) { target.scrollIntoView(); }
}
if (window.matchMedia("(max-width: 60rem)").matches) {
  document.querySelector("nav details").open = false;
}
window.addEventListener("hashchange", reveal);
reveal();
(function () {  // players get their clip when they come into view, and give it back when they leave
  var store = document.getElementById("clips");
  if (!store) { return; }
  var clips = JSON.parse(store.textContent);
  function give(player) {
    if (!player.src) { player.src = "data:audio/mpeg;base64," + clips[player.dataset.clip]; }
  }
  function take(player) {
    if (player.src && player.paused) { player.removeAttribute("src"); player.load(); }
  }
  var players = document.querySelectorAll("audio[data-clip]");
  if (!window.IntersectionObserver) { players.forEach(give); return; }
  var watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (e) { (e.isIntersecting ? give : take)(e.target); });
  }, {rootMargin: "400px"});
  players.forEach(function (player) { watch.observe(player); });
})();
document.addEventListener("play", function (event) {
  document.querySelectorAll("audio").forEach(function (other) {
    if (other !== event.target) { other.pause(); } });
}, true);
window.addEventListener("beforeprint", function () {  // the details are printed if they are open
  document.querySelectorAll(".front details, .specialists[open] details").forEach(function (d) {
    d.open = true; }); });
"""

"""Style and script of the page; nothing is loaded from anywhere else."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--bg:#ffffff;--fg:#1b1f24;--soft:#57606a;--line:#d0d7de;--card:#f6f8fa;--accent:#0550ae;
--good:#116329;--bad:#a40e26;--c0:#0b62c4;--c1:#c4320a;--c2:#13795b;--c3:#8a3ffc;--c4:#8a6100;--c5:#a3186b;--c6:#00707a;
--c7:#5b6b00;--c8:#6b4a2b;--c9:#3f51b5;--c10:#b0005d;--c11:#555555}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--soft:#9da7b3;--line:#30363d;--card:#161b22;
--accent:#79b8ff;--good:#56d364;--bad:#ff8a8a;--c0:#6cb6ff;--c1:#ff9a6c;--c2:#57d9a3;--c3:#c9a6ff;--c4:#e3b341;
--c5:#ff85c8;--c6:#56d4dd;--c7:#c5d64a;--c8:#d2a679;--c9:#9fa8ff;--c10:#ff7eb6;--c11:#b0b0b0}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main,header,footer,nav{max-width:1180px;margin:0 auto;padding:0 1rem}
header{padding-top:1.6rem}h1{font-size:1.7rem;line-height:1.2;margin:.2rem 0}h2{font-size:1.3rem;margin:2.4rem 0 .5rem;
border-bottom:1px solid var(--line);padding-bottom:.3rem}h3{font-size:1.05rem;margin:1.4rem 0 .4rem}
p{max-width:75ch}.soft,figcaption,caption{color:var(--soft)}a{color:var(--accent)}
nav{position:sticky;top:0;background:var(--bg);z-index:2;border-bottom:1px solid var(--line);padding-block:.4rem}
nav ul{display:flex;gap:1rem;list-style:none;margin:0;padding:0;overflow-x:auto;white-space:nowrap}
.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:1rem;background:var(--bg);padding:.5rem;z-index:9}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8rem;margin:1rem 0;padding:0;
list-style:none}.cards li{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem}
.cards b{display:block;font-size:1.35rem;line-height:1.2}
.controls{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:center;background:var(--card);border:1px solid
var(--line);border-radius:8px;padding:.6rem .9rem;margin:.8rem 0}
.controls fieldset{border:0;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem .9rem}
.controls legend{float:left;font-weight:600;margin-right:.8rem;padding:0}
.controls label{display:inline-flex;align-items:center;gap:.3rem;min-height:2rem;cursor:pointer}
.controls input[type=search]{font:inherit;padding:.25rem .5rem;border:1px solid var(--line);border-radius:6px;
background:var(--bg);color:var(--fg);max-width:100%}
.swatch{width:.9em;height:.9em;border-radius:2px;display:inline-block}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin:.6rem 0}
.scroll:focus{outline:2px solid var(--accent)}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.5rem .7rem;font-size:.9rem}
caption span{display:block;position:sticky;left:.7rem;max-width:min(75ch,calc(100vw - 4rem))}
th,td{padding:.35rem .6rem;text-align:right;border-top:1px solid var(--line);white-space:nowrap;vertical-align:top}
th:first-child,td:first-child,td.text,th.text{text-align:left}td.wrap{white-space:normal;min-width:16rem}
thead th{background:var(--card);border-top:0;white-space:normal;vertical-align:bottom}tbody th{font-weight:600}
thead button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;cursor:pointer;
text-align:inherit;
min-height:1.8rem}
thead button::after{content:" \\2195";color:var(--soft)}th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}button:focus-visible,input:focus-visible{outline:2px solid
var(--accent);outline-offset:2px}
.interval{color:var(--soft);font-size:.88em}.paper{color:var(--accent)}.higher{color:var(--good);font-weight:600}
.lower{color:var(--bad);font-weight:600}tr.focus th,tr.focus td{background:var(--card)}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,430px),1fr));gap:1rem}
figure{margin:0;border:1px solid var(--line);border-radius:8px;padding:.6rem .6rem .3rem}
figure h4{margin:0 0 .2rem;font-size:.98rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .8rem;list-style:none;margin:0;padding:0;font-size:.85rem}
figcaption{font-size:.85rem;padding:.2rem .3rem .4rem;min-height:1.6em}
.chart{width:100%;height:auto;display:block}.chart text{fill:var(--soft);font-size:13px}.chart .label{fill:var(--fg)}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft)}.line{fill:none;stroke:var(--c);stroke-width:2.2}
.band{fill:var(--c);opacity:.1;stroke:none}.dot{fill:var(--c);stroke:none}
.reference line{stroke-width:1.3;stroke-dasharray:2 4}.reference text{font-size:11px}
.strip{width:100%;height:auto;border-radius:6px;display:block;background:#fff}
details{margin:.5rem 0}summary{cursor:pointer;min-height:2rem}
pre{overflow:auto;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.7rem;font-size:.85rem;
max-height:26rem}
dl{display:grid;grid-template-columns:minmax(9rem,auto) 1fr;gap:.35rem 1rem}dt{font-weight:600}dd{margin:0}
[hidden]{display:none!important}
@media (max-width:600px){body{font-size:15px}h1{font-size:1.35rem}th,td{padding:.3rem .4rem}
table{font-size:.85rem}tbody th{white-space:normal;min-width:6.4rem}
.interval{display:block}thead th{white-space:normal}
dl{grid-template-columns:1fr}dd{margin-bottom:.5rem}.chart text{font-size:17px}.reference text{font-size:14px}}
@media print{nav,.controls{display:none}details>*{display:block}}
"""

SCRIPT = """
(function(){
'use strict';
var all=function(q,e){return Array.prototype.slice.call((e||document).querySelectorAll(q));};
function key(cell){var v=cell?cell.getAttribute('data-value'):null;
 if(v===null){v=cell?cell.textContent.trim():'';}
 var n=Number(v);return v!==''&&!isNaN(n)?n:(v===''?null:v);}
all('table[data-sortable]').forEach(function(table){
 all('thead th',table).forEach(function(head,place){
  var button=head.querySelector('button');if(!button){return;}
  button.addEventListener('click',function(){
   var up=head.getAttribute('aria-sort')==='descending'||
    (head.getAttribute('aria-sort')===null&&head.classList.contains('text'));
   all('thead th',table).forEach(function(other){other.removeAttribute('aria-sort');});
   head.setAttribute('aria-sort',up?'ascending':'descending');
   var body=table.tBodies[0];
   var rows=all('tr',body).map(function(row,i){return {row:row,i:i,k:key(row.children[place])};});
   rows.sort(function(a,b){
    if(a.k===null||b.k===null){return a.k===b.k?a.i-b.i:(a.k===null?1:-1);}
    var d=typeof a.k==='number'&&typeof b.k==='number'?a.k-b.k:String(a.k).localeCompare(String(b.k));
    return d===0?a.i-b.i:(up?d:-d);});
   rows.forEach(function(each){body.appendChild(each.row);});
  });
 });
});
all('section[data-experiment]').forEach(function(section){
 var search=section.querySelector('input[type=search]');
 var boxes=all('input[data-show]',section);
 var said=section.querySelector('[data-count]');
 function apply(){
  var words=(search?search.value:'').toLowerCase().split(/\\s+/).filter(Boolean);
  var off={};boxes.forEach(function(box){off[box.getAttribute('data-show')]=!box.checked;});
  var shown=0,total=0;
  all('[data-method],[data-dataset]',section).forEach(function(e){
   var method=e.getAttribute('data-method'),name=e.getAttribute('data-dataset');
   var hide=(method!==null&&off[method]===true)||
    (name!==null&&!words.every(function(w){return name.toLowerCase().indexOf(w)>=0;}));
   if(hide){e.setAttribute('hidden','');}else{e.removeAttribute('hidden');}
   if(e.hasAttribute('data-row')&&e.closest('#'+section.id+'-scores')){total+=1;if(!hide){shown+=1;}}
  });
  if(said){said.textContent=shown+' of '+total+' rows of scores shown';}
 }
 if(search){search.addEventListener('input',apply);}
 boxes.forEach(function(box){box.addEventListener('change',apply);});
 apply();
});
all('figure').forEach(function(figure){
 var svg=figure.querySelector('svg'),words=figure.querySelector('figcaption');
 if(!svg||!words){return;}
 var usual=words.textContent,dots=all('.dot',svg);
 svg.addEventListener('pointermove',function(event){
  var best=null,near=900;
  dots.forEach(function(dot){
   if(dot.parentNode.hasAttribute('hidden')){return;}
   var box=dot.getBoundingClientRect();
   var dx=event.clientX-(box.left+box.width/2),dy=event.clientY-(box.top+box.height/2),d=dx*dx+dy*dy;
   if(d<near){near=d;best=dot;}
  });
  words.textContent=best?best.getAttribute('data-told'):usual;
 });
 svg.addEventListener('pointerleave',function(){words.textContent=usual;});
});
})();
"""
